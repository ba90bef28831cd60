"""READ: an array with its observed entries and metadata, from any format and back; data for experiments."""

from kruskal.data import datasets
from kruskal.data.arrays import real_array, refuse_constant
from kruskal.data.atomic import atomic_path
from kruskal.data.corruption import Corrupted, corrupt, write_corrupted
from kruskal.data.files import check_writable, read, write
from kruskal.data.masks import observed_entries
from kruskal.data.metadata import Loaded, Metadata
from kruskal.data.noise import rough_noise
from kruskal.data.scaling import Scaling

__all__ = [
    "Corrupted",
    "Loaded",
    "Metadata",
    "Scaling",
    "atomic_path",
    "check_writable",
    "corrupt",
    "datasets",
    "observed_entries",
    "read",
    "real_array",
    "refuse_constant",
    "rough_noise",
    "write",
    "write_corrupted",
]
