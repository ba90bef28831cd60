"""What is drawn, in which order: the models behind one small protocol."""

from kruskal.models.base import FIRST_NOISE_PRECISION, Engine, Global, Model, SweepReport
from kruskal.models.bpfa import BPFA
from kruskal.models.kfa import KFA

__all__ = ["BPFA", "FIRST_NOISE_PRECISION", "KFA", "Engine", "Global", "Model", "SweepReport"]
