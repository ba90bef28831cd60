"""Measurements: how fast the sampler is, and how good its results are beside the paper's."""
