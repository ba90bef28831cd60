"""What is drawn, in which order: the models behind one small protocol."""

from kruskal.models.base import Engine, Global, Model, SweepReport
from kruskal.models.bpfa import BPFA
from kruskal.models.cfa import CFA, CKFA
from kruskal.models.conv import ConvModel
from kruskal.models.conv_online import sweep_batch
from kruskal.models.conv_state import ConvGlobal, ConvReport, ImageEngine
from kruskal.models.kfa import KFA

__all__ = [
    "BPFA",
    "CFA",
    "CKFA",
    "KFA",
    "ConvGlobal",
    "ConvModel",
    "ConvReport",
    "Engine",
    "Global",
    "ImageEngine",
    "Model",
    "SweepReport",
    "sweep_batch",
]
