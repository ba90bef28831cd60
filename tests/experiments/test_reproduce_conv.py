"""conv-barbara: its cells, a short run, its table and its figure."""

import json

import numpy as np
import pytest
from reproduce_example import PNG, make_context, short_runs

from kruskal.experiments import conv_barbara, registry


@pytest.fixture
def short(monkeypatch):
    """Small atoms and few sweeps on a small picture."""
    short_runs(monkeypatch)
    right = conv_barbara._cell

    def cell(model, seed):
        key, options = right(model, seed)
        fit = options["fit"] | {"n_atoms": 3, "atom_size": [3, 3], "sweeps": 4}
        return conv_barbara.Cell(key, options | {"fit": fit})

    monkeypatch.setattr(conv_barbara, "_cell", cell)


def test_quick_cells_are_among_the_others():
    experiment = registry.get("conv-barbara")
    everything = {cell.key: cell for cell in experiment.cells(False, 2)}
    quick = experiment.cells(True, None)
    assert [cell.key for cell in quick] == ["cfa-keep50-seed1", "ckfa-rank1-keep50-seed1"]
    assert len(everything) == 8 and all(everything[cell.key] == cell for cell in quick)
    assert all(json.loads(json.dumps(cell.options)) == cell.options for cell in quick)


def test_run_table_and_figure(short, tmp_path):
    experiment = registry.get("conv-barbara")
    assert experiment.figure({}, tmp_path) is None
    context = make_context(tmp_path)
    results = {cell.key: experiment.run(cell, context) for cell in experiment.cells(True, None)}
    json.dumps(results, allow_nan=False)
    assert results["cfa-keep50-seed1"]["parameters"] == 27
    assert results["ckfa-rank1-keep50-seed1"]["parameters"] == 3 * (1 + 3 + 3 + 1)
    (table,) = experiment.tables(results)
    rows = {row[0]: row for row in table.rows}
    assert set(rows) == {"CFA", "CKFA, R = 1", "CKFA, R = 2", "CKFA, R = 4"}
    gain = results["ckfa-rank1-keep50-seed1"]["psnr"] - results["cfa-keep50-seed1"]["psnr"]
    assert rows["CKFA, R = 1"][3].ours == pytest.approx(gain) and rows["CKFA, R = 4"][3] is None
    assert np.isfinite(rows["CFA"][2].ours)
    figure = experiment.figure(results, context.folder)
    assert figure is not None and figure.startswith(PNG)
