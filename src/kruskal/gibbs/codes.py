r"""Codes: z_kn and s_kn of every item, given the atoms.

With the residual without atom k, x~_n = x_n - sum_{k' != k} d_k' w_k'n, and the mask omega,

    c_kn = gamma_eps sum_i omega_in d_ik^2,    l_kn = gamma_eps sum_i omega_in d_ik x~_in          (1.10)

collapsed:    log r = logit pi_k + 1/2 log(gamma_s / (gamma_s + c)) + l^2 / (2 (gamma_s + c)),         (1.13)
              the log odds of z=1 to z=0
uncollapsed:  logit P(z=1 | s) = logit pi_k - (s^2 c - 2 s l) / 2                                    (1.11)
slab          s | z=1 ~ N(l / (gamma_s + c), 1 / (gamma_s + c))                                      (1.12)

The collapsed form changes a z = 0 to 1 with probability min(1, r) and draws its s, and a z = 1 to 0 with
probability min(1, 1 / r) (Liu's Metropolised Gibbs sampler: exact, and z changes more often than by a draw
from r / (1 + r)). The s of a z that stays 1 stays too, as all s of an item are drawn anew right after,
jointly (`kruskal.gibbs.slabs`). The uncollapsed form draws z and s of every pair. s with z=0 is its prior
draw and never stored; the uncollapsed form draws it afresh where it needs it.

Items are independent given the atoms; within an item the atoms are visited in order. Three things make the
sweep fast without changing its distribution:

* only the observed entries of an item are touched, and correlations are computed for a block of contiguous
  atoms at a time (masked), or for a chunk of items by one matrix product (complete data, Gram form);
* for most pairs (item, atom) a comparison tells that z stays as it is, see `kruskal.gibbs.pairs`;
* residuals and correlations are brought up to date only after a change.
"""

from typing import NamedTuple

import numpy as np

from kruskal.gibbs.codes_complete import sweep_complete
from kruskal.gibbs.codes_masked import sweep_masked
from kruskal.gibbs.codes_uncollapsed import sweep_uncollapsed
from kruskal.gibbs.lanes import aligned_zeros
from kruskal.gibbs.local import Codes, Shard
from kruskal.gibbs.pairs import padded
from kruskal.random import key_of


class CodeModel(NamedTuple):
    """All that an item needs to know to draw its codes; made once per sweep by `code_model`.

    Attributes
    ----------
    dictionary : (K, P) atoms in the data's precision
    columns : (P, K') the same, entry-major, padded with zeros to a multiple of `pairs.LANES` atoms
    gram : (K, K') D^T D in the data's precision (used by complete data only, else (0, 0))
    log_odds : (G, K) float64 logit pi_kg of each region
    code_precision, noise_precision : gamma_s, gamma_eps
    products : (K, K) D^T D in float64, from `atom_products`
    """

    dictionary: np.ndarray
    columns: np.ndarray
    gram: np.ndarray
    log_odds: np.ndarray
    code_precision: float
    noise_precision: float
    products: np.ndarray


def code_model(dictionary, log_odds, code_precision, noise_precision, dtype, complete) -> CodeModel:
    """Cast the global state once for all items: ``dictionary`` (K, P), ``log_odds`` (G, K) logit pi."""
    atoms = np.ascontiguousarray(dictionary, dtype=dtype)
    columns = aligned_zeros(atoms.shape[1], padded(len(atoms)), atoms)
    columns[:, : len(atoms)] = atoms.T
    gram = aligned_zeros(len(atoms) if complete else 0, columns.shape[1], atoms)
    if complete:
        np.matmul(atoms, columns, out=gram)
    return CodeModel(
        atoms, columns, gram, log_odds, float(code_precision), float(noise_precision),
        atom_products(atoms, complete),
    )  # fmt: skip


def atom_products(dictionary: np.ndarray, complete: bool) -> np.ndarray:
    """(K, K) products of atoms, exact but for float64, of complete data; (0, 0) of masked data.

    Rounded to single precision they would spoil the joint draw of codes of similar atoms.
    """
    atoms = dictionary.astype(np.float64)
    return atoms @ atoms.T if complete else np.zeros((0, 0))


def draw_codes(
    shard: Shard, model: CodeModel, seed: int, sweep: int, collapsed: bool = True
) -> np.ndarray:  # fmt: skip
    """Draw the z of every item of a shard, and the s of those that come into use (uncollapsed: every s).

    Replaces ``shard.codes`` and, if masked, ``shard.residual``; returns sum_n z_kn by region and atom (G, K).
    """
    key = key_of(seed)
    old = shard.codes
    capacity = len(old.atom) + len(old.atom) // 4 + 8 * shard.n_items + len(model.dictionary)
    items = shard.items
    while True:
        start = np.zeros(shard.n_items + 1, np.int64)
        counts = np.zeros(model.log_odds.shape, np.int64)
        atom = np.empty(capacity, np.uint16)
        value = np.empty(capacity, items.flat.dtype)
        address = (*key, sweep, shard.first)
        if not collapsed:
            draw = sweep_uncollapsed
        elif items.complete:
            draw = sweep_complete
        else:
            draw = sweep_masked
        done = draw(
            items.flat, items.origin, items.offset, items.region, shard.entry_start, shard.entry, *old,
            *model[:-1], address,  # the products are for the joint draw of the slabs
            start, atom, value, counts, shard.residual,
        )  # fmt: skip
        if done:
            break
        capacity *= 2  # the buffer was too small; the same random numbers give the same codes again
    for buffer in (atom, value):
        buffer.resize(start[-1], refcheck=False)  # in place: nobody else knows of it
    shard.codes = Codes(start, atom, value)
    return counts
