"""Starts: principal directions of the mean-filled items, Kruskal terms of them, and draws from the prior."""

import numpy as np
import pytest

from kruskal.errors import InputError
from kruskal.gibbs.start import check_start, gaussian_start, kruskal_start, principal_atoms
from kruskal.patches import Grid, cut
from kruskal.tensor import compose, entry_rows


def picture(masked: bool):
    random = np.random.default_rng(0)
    values = random.standard_normal((20, 4)) @ random.standard_normal((4, 18)) + 1.0
    observed = random.random(values.shape) < 0.7 if masked else None
    grid = Grid.over(values.shape, (4, 3), 1)
    filled = values if observed is None else np.where(observed, values, values[observed].mean())
    patches = [filled[i : i + 4, j : j + 3].ravel() for i in grid.corners()[0] for j in grid.corners()[1]]
    return cut(values, observed, grid), np.array(patches)


@pytest.mark.parametrize("masked", [False, True], ids=["complete", "masked"])
@pytest.mark.parametrize("n_atoms", [1, 5, 40])
def test_principal_atoms(masked, n_atoms):
    """Three standard deviations along each eigenvector of the second moment, largest first."""
    items, patches = picture(masked)
    atoms = principal_atoms(items, n_atoms)
    values, vectors = np.linalg.eigh(patches.T @ patches / len(patches))
    n_wanted = min(n_atoms, 12)
    assert atoms.shape == (n_wanted, 12)
    for k in range(n_wanted):
        size = 3.0 * np.sqrt(max(values[-1 - k], 0.0))
        assert np.linalg.norm(atoms[k]) == pytest.approx(size, rel=1e-9, abs=1e-6)
        if size > 1e-3:
            assert abs(atoms[k] @ vectors[:, -1 - k]) == pytest.approx(size, rel=1e-8)
            assert atoms[k][np.abs(atoms[k]).argmax()] > 0.0


def test_gaussian_start():
    items, _ = picture(True)
    start = gaussian_start("pca", items, 30, np.random.default_rng(0))
    np.testing.assert_array_equal(start[:12], principal_atoms(items, 30))
    assert np.sqrt((start[12:] ** 2).sum(axis=1)).mean() == pytest.approx(0.1, rel=0.1)
    start = gaussian_start("random", items, 3000, np.random.default_rng(0))
    assert start.var() == pytest.approx(1.0 / 12, rel=0.03)


def test_kruskal_start():
    items, _ = picture(True)
    weights, factors = kruskal_start("pca", items, 20, 3, np.random.default_rng(0))
    atoms = compose(weights, factors, entry_rows((4, 3)))
    np.testing.assert_allclose(atoms[:12], principal_atoms(items, 20), rtol=1e-9, atol=1e-9)
    assert np.abs(weights[12:]).max() < 0.5
    weights, factors = kruskal_start("random", items, 2000, 3, np.random.default_rng(0))
    assert weights.var() == pytest.approx(1.0, rel=0.1)
    assert factors[:, :4].var() == pytest.approx(1.0 / 4, rel=0.05)
    assert factors[:, 4:].var() == pytest.approx(1.0 / 3, rel=0.05)


def test_unknown_start():
    with pytest.raises(InputError, match="pca, random"):
        check_start("svd")
