"""What is drawn, in which order: the models behind one small protocol."""

from kruskal.models.base import DELAY, FIRST_NOISE_PRECISION
from kruskal.models.bpfa import BPFA
from kruskal.models.cfa import CFA, CKFA
from kruskal.models.conv import ConvModel
from kruskal.models.conv_online import sweep_batch
from kruskal.models.conv_state import ConvGlobal, ConvReport, ImageEngine
from kruskal.models.kfa import KFA
from kruskal.models.mgp_cp import MGPCPModel
from kruskal.models.protocol import Engine, Global, Model, SweepReport
from kruskal.models.term_rows import Terms

__all__ = [
    "BPFA",
    "CFA",
    "CKFA",
    "DELAY",
    "FIRST_NOISE_PRECISION",
    "KFA",
    "ConvGlobal",
    "ConvModel",
    "ConvReport",
    "Engine",
    "Global",
    "ImageEngine",
    "MGPCPModel",
    "Model",
    "SweepReport",
    "Terms",
    "sweep_batch",
]
