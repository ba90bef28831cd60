"""Counter-based randomness: every draw is a pure function of (seed, what, sweep, item, atom)."""

from kruskal.random.streams import Stream, generator, key_of

__all__ = ["Stream", "generator", "key_of"]
