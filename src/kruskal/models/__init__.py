"""What is drawn, in which order: the models behind one small protocol."""

from kruskal.models.base import FIRST_NOISE_PRECISION, Engine, Global, Model, SweepReport
from kruskal.models.bpfa import BPFA
from kruskal.models.kfa import KFA
from kruskal.models.mgp_cp import MGPCPModel
from kruskal.models.term_rows import Terms

__all__ = [
    "BPFA",
    "FIRST_NOISE_PRECISION",
    "KFA",
    "Engine",
    "Global",
    "MGPCPModel",
    "Model",
    "SweepReport",
    "Terms",
]
