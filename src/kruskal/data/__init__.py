"""READ: an array with its observed entries and metadata, from any format and back; data for experiments."""

from kruskal.data import datasets
from kruskal.data.arrays import (
    SMALLEST_NORMAL,
    real_array,
    refuse_constant,
    refuse_huge,
    refuse_infinite,
    refuse_tiny,
)
from kruskal.data.atomic import atomic_path
from kruskal.data.contrast import normalize_contrast
from kruskal.data.corruption import Corrupted, corrupt, write_corrupted
from kruskal.data.counts import NOISE_OF_ROOTS, counts_of_roots, noise_grows, roots_of_counts
from kruskal.data.files import check_writable, read, write
from kruskal.data.labelled import LabelledPictures, labelled_pictures
from kruskal.data.masks import check_mask_shape, observed_entries
from kruskal.data.metadata import Loaded, Metadata
from kruskal.data.noise import growth_of_differences, rough_noise
from kruskal.data.noise_bound import noise_bound, signal_directions
from kruskal.data.outliers import far_entries
from kruskal.data.resize import resize
from kruskal.data.scaling import Scaling
from kruskal.data.splits import split_by_class

__all__ = [
    "NOISE_OF_ROOTS",
    "SMALLEST_NORMAL",
    "Corrupted",
    "LabelledPictures",
    "Loaded",
    "Metadata",
    "Scaling",
    "atomic_path",
    "check_mask_shape",
    "check_writable",
    "corrupt",
    "counts_of_roots",
    "datasets",
    "far_entries",
    "growth_of_differences",
    "labelled_pictures",
    "noise_bound",
    "noise_grows",
    "normalize_contrast",
    "observed_entries",
    "read",
    "real_array",
    "refuse_constant",
    "refuse_huge",
    "refuse_infinite",
    "refuse_tiny",
    "resize",
    "roots_of_counts",
    "rough_noise",
    "signal_directions",
    "split_by_class",
    "write",
    "write_corrupted",
]
