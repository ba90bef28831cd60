"""What is drawn, in which order: the models behind one small protocol."""

from kruskal.models.bpfa import BPFA
from kruskal.models.kfa import KFA
from kruskal.models.protocol import Engine, Global, Model, SweepReport

__all__ = ["BPFA", "KFA", "Engine", "Global", "Model", "SweepReport"]
