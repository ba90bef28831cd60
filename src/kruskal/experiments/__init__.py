"""Measurements: how fast the sampler is."""
