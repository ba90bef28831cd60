"""A sweep over one batch of images, while those of former batches are only remembered."""

from functools import partial

from kruskal.gibbs.conv_atoms import draw_atoms_lags
from kruskal.gibbs.conv_maps import MapDraw
from kruskal.gibbs.conv_memory import ConvMemory, memory_of
from kruskal.gibbs.conv_statistics import lag_statistics
from kruskal.gibbs.statistics import sum_in_order
from kruskal.models.conv import ConvModel
from kruskal.models.conv_state import ConvGlobal, ImageEngine


def sweep_batch(
    model: ConvModel,
    state: ConvGlobal,
    engine: ImageEngine,
    memory: ConvMemory | None,
    seed: int,
    number: int,
) -> tuple[ConvGlobal, ConvMemory]:
    """Draw the maps of a batch of complete images, then everything else given them and the memory.

    All images share one usage: of former ones no counts of their own are kept.

    Returns
    -------
    state, and the sums over this batch: what is to be added to the memory after its last sweep
    """
    drawn = model.draw_maps(state, engine, seed, number, (1, 1))
    visit = partial(
        lag_statistics, dictionary=state.dictionary, layout=model.layout, first=0, size=model.n_atoms
    )
    lags = engine.total(visit, lambda one, other: sum_in_order([one, other]))  # these sums are large
    batch = memory_of(lags, drawn, state.dictionary, model.shape, engine.n_images, engine.n_observed)
    total = batch if memory is None else memory.plus(batch)
    known = MapDraw(total.counts, total.squares, total.residual_squares)
    state = model.draw_shared_usage(state, known.counts, total.n_images, seed, number)
    state = model.draw_precisions(state, known, total.n_observed, seed, number)
    atoms = model.atoms_of(state)
    lags = total.lags(state.dictionary, model.shape)
    draw_atoms_lags(atoms, 0, lags, state.noise_precision, model.atom_noise(seed, number))
    return model.draw_atom_prior(model.with_atoms(state, atoms), seed, number), batch
