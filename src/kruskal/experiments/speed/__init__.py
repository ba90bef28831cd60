"""The speed of the sampler, measured on the machine at hand: `kruskal bench`. Begin with `run`."""
