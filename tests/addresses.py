"""The addresses of the random numbers that convolutional models use."""

from kruskal.models import cfa, conv, conv_usage, kruskal_prior
from kruskal.random import generator


def watch_addresses(monkeypatch):
    """A list that grows by (seed, what, sweep, first image or None) with every draw from now on."""
    used = []

    def watched_generator(seed, stream, number):
        used.append((seed, stream.name, number, None))
        return generator(seed, stream, number)

    def watched(draw):
        def drawn(shard, *, seed, sweep, **options):
            used.append((seed, draw.__name__, sweep, shard.first))
            return draw(shard, seed=seed, sweep=sweep, **options)

        return drawn

    for module in (cfa, conv, conv_usage, kruskal_prior):
        monkeypatch.setattr(module, "generator", watched_generator)
    for draw in (conv.draw_maps, conv.relocate_codes):
        monkeypatch.setattr(conv, draw.__name__, watched(draw))
    return used
