"""What is drawn, in which order: the models behind one small protocol."""

from kruskal.models.base import Engine, Global, Model, SweepReport
from kruskal.models.bpfa import BPFA
from kruskal.models.kfa import KFA

__all__ = ["BPFA", "KFA", "Engine", "Global", "Model", "SweepReport"]
