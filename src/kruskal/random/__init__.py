"""Counter-based randomness: every draw is a pure function of (seed, what, sweep, item, atom)."""

from kruskal.random.streams import Stream, check_seed, generator, key_of

__all__ = ["Stream", "check_seed", "generator", "key_of"]
