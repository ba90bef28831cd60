"""The bench on tiny sizes: what it counts is right, what it times is at least there."""

import importlib.util
import json
import platform
import re
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from speed_example import TINY, call_here, silent

from kruskal.data import datasets
from kruskal.experiments.speed import decomposition as speed_decomposition
from kruskal.experiments.speed import goals as speed_goals
from kruskal.experiments.speed import growth as speed_growth
from kruskal.experiments.speed import images as speed_images
from kruskal.experiments.speed import measure as speed_measure
from kruskal.experiments.speed import online as speed_online
from kruskal.experiments.speed import peers as speed_peers
from kruskal.experiments.speed import phases as speed_phases
from kruskal.experiments.speed import plan as speed_plan
from kruskal.experiments.speed import problems as speed_problems
from kruskal.experiments.speed import run as speed_run
from kruskal.experiments.speed import startup as speed_startup
from kruskal.experiments.speed import tables as speed_tables
from kruskal.experiments.speed import worker as speed_worker
from kruskal.experiments.speed.console import new_console


@pytest.fixture(scope="module")
def phases():
    return speed_phases.phases(TINY, [1, 2], silent)


@pytest.fixture
def here(monkeypatch):
    """All measurements in this process."""
    monkeypatch.setattr(speed_growth, "call", call_here)
    monkeypatch.setattr(speed_run, "call", call_here)
    monkeypatch.setattr(speed_startup, "_seconds", lambda code: 0.25)


def test_the_plans_hold_what_the_issue_asks_for():
    full = speed_plan.FULL
    assert full.item_counts[0] == 1_000 and 62_001 in full.item_counts and full.item_counts[-1] == 1_000_000
    assert (min(full.atom_counts), max(full.atom_counts)) == (64, 1024)
    sizes = [speed_problems.n_entries(shape) for shape in full.patch_shapes]
    assert (min(sizes), max(sizes)) == (64, 1000)
    assert full.warm_sweeps == 20 and full.peers
    assert max(speed_plan.QUICK.item_counts) <= 62_001 and not speed_plan.QUICK.peers


@pytest.mark.parametrize("kind", ["complete", "masked"])
def test_phases(phases, kind):
    measured = phases[kind]
    assert measured["n_items"] == 33**2 and measured["n_entries"] == 64 and measured["n_atoms"] == 12
    assert measured["identical_for_all_threads"]
    assert 0 < measured["active_per_item"] <= 12
    assert list(measured["threads"]) == ["1", "2"]
    for one in measured["threads"].values():
        assert list(one["phases"]) == list(speed_measure.PHASES)
        assert all(seconds > 0 for seconds in one["phases"].values())
        assert sum(one["phases"].values()) <= one["sweep_seconds"] * (1 + 1e-9)
        assert one["codes_to_product"] == pytest.approx(one["phases"]["codes"] / one["product_seconds"])
        assert one["atoms_to_codes"] == pytest.approx(one["phases"]["atoms"] / one["phases"]["codes"])
        assert one["pairs_per_second"] == pytest.approx(33**2 * 12 / one["phases"]["codes"])
        assert one["run_sweeps"] == 4 and min(one["run_seconds"]) > 2 * one["sweep_seconds"]
        assert one["cores_got"] > 0 and one["cores_of_others"] >= 0
    assert measured["threads"]["1"]["product_way"] == speed_measure.ONE_CALL
    assert measured["threads"]["2"]["product_way"] in (speed_measure.ON_A_POOL, speed_measure.BLAS_THREADS)
    assert all(measured["speed_up"]["2"][what] > 0 for what in ("sweep", "run", "product"))


def test_memory_counts_every_array_once(phases):
    complete, masked = phases["complete"]["memory"], phases["masked"]["memory"]
    assert complete["raw_bytes_per_item"] == 256
    assert complete["bytes_per_item"] == pytest.approx(sum(complete["parts"].values()))
    assert complete["code_bytes_per_item"] == pytest.approx(6 * phases["complete"]["active_per_item"])
    assert complete["parts"]["items.flat"] == pytest.approx(4 * 40**2 / 33**2)  # one picture for all shards
    observed = 64 * phases["masked"]["observed_share"]
    assert masked["parts"]["residual"] == pytest.approx(4 * observed)
    assert masked["beyond_codes_to_raw"] == pytest.approx(
        (masked["bytes_per_item"] - masked["code_bytes_per_item"]) / 256
    )


def test_the_chain_that_is_timed_is_the_chain_that_users_run():
    values = speed_problems.mirrored(speed_problems.picture().values, (24, 24))
    problem = speed_problems.make_problem(values, 0.5, (4, 4), 8)
    from kruskal.restore import inpaint

    with speed_measure.TimedChain(problem, 1) as timed:
        for _ in range(7):
            timed.chain.advance(keep=False)
        timed.advance()
        mine = problem.scaling.inverse(timed.chain.now.moments.mean()).reshape(24, 24)
    theirs = inpaint(
        *problem.damaged,
        patch_shape=(4, 4),
        n_atoms=8,
        sweeps=8,
        burn_in=7,
        annealing=0,
        seed=0,
        threads=1,
        stride=1,
    )
    np.testing.assert_array_equal(mine, theirs.mean)


def test_products_are_right_and_scaled_up(monkeypatch):
    problem = speed_problems.make_problem(speed_problems.volume((12, 12)), 1.0, (4, 4), 6)
    monkeypatch.setattr(speed_measure, "_MOST_ROWS", 27)
    with speed_measure.TimedChain(problem, 1) as timed:
        product = speed_measure.Product(problem, timed.engine.shards)
    assert product.rows == 27 and product.scale == 3.0
    for threads in (1, 2):
        product._result[:] = np.nan
        seconds = product.run(threads)
        assert 0 < product.fastest(threads)[0] <= seconds
        np.testing.assert_allclose(product._result, product._data @ product._atoms, rtol=1e-5, atol=1e-5)


def test_sides_and_arrays_have_exactly_the_items_asked_for():
    assert speed_problems.grid_sides(62_001, 2) == (249, 249)
    assert speed_problems.grid_sides(1_000_000, 2) == (1000, 1000)
    for n_items, patch in ((60, (3, 3, 3)), (1_000, (8, 8)), (70_000, (8, 8))):
        values = speed_problems.textured(n_items, patch).values
        assert speed_problems.make_problem(values, 1.0, patch, 4).items.n_items == n_items


def test_mirroring_and_made_up_volumes():
    base = np.arange(12.0).reshape(3, 4)
    grown = speed_problems.mirrored(base, (7, 2))
    assert grown.shape == (7, 2)
    np.testing.assert_array_equal(grown[:, 0], [1, 5, 9, 9, 5, 1, 1])
    one, two = speed_problems.volume((9, 8, 7)), speed_problems.volume((9, 8, 7))
    np.testing.assert_array_equal(one, two)
    assert one.shape == (9, 8, 7) and 0 <= one.min() < one.max() <= 255


def test_a_picture_stands_in_for_barbara(monkeypatch, tmp_path):
    monkeypatch.setenv(datasets.VARIABLE, str(tmp_path))
    source = speed_problems.picture()
    assert source.values.shape == (256, 256) and "scikit-image" in source.name
    assert speed_problems.brain(8).values.shape == (8, 8, 8)


@pytest.mark.parametrize("power", [0.5, 1.0, 1.7])
def test_exponents_of_made_up_times(power):
    sizes = [62_001, 250_000, 1_000_000]
    assert speed_growth.exponent(sizes, [3e-6 * size**power for size in sizes]) == pytest.approx(power)


def test_exponents_by_axis_kind_and_threads():
    assert speed_growth.exponent([5, 5], [1, 2]) is None
    runs = [
        {
            "n_items": size, "n_atoms": 4, "kind": kind, "threads": threads,
            "sweep_seconds": size ** (1.2 if size >= 60_000 else 0.1), "codes_seconds": float(size),
        }
        for size in (10, 1_000, 62_001, 1_000_000) for kind in speed_plan.KEEPS for threads in (1, 2)
    ]  # fmt: skip
    found = speed_growth.exponents({"items": runs})
    assert len(found) == 8
    large = [one for one in found if one["range"] == "large"]
    assert all(one["sizes"] == [62_001, 1_000_000] for one in large)
    assert [one["sweep"] for one in large] == pytest.approx([1.2] * 4)
    assert [one["codes"] for one in found] == pytest.approx([1.0] * 8)


def test_a_worker_measures_in_a_process_of_its_own():
    ballast = np.ones(60_000_000)  # its peak must not show
    request = {
        "n_items": 100, "n_atoms": 6, "patch_shape": [4, 4], "keep": 0.2, "kind": "masked", "threads": 1,
        "sweeps": 5, "runs": 3,
    }  # fmt: skip
    answer = speed_worker.call("growth", request)
    assert request.items() <= answer.items()
    assert [len(run) for run in answer["all_sweep_seconds"]] == [5, 5, 5]
    last = sorted(seconds for run in answer["all_sweep_seconds"] for seconds in run[-3:])
    assert answer["sweep_seconds"] == last[4]
    assert 5e7 < answer["peak_bytes"] < ballast.nbytes
    assert speed_measure.peak_memory() >= ballast.nbytes
    with pytest.raises(speed_worker.WorkerFailed, match="exit status"):
        speed_worker.call("growth", {})


def test_growth_goes_on_after_a_failure(monkeypatch):
    def call(task, request):
        if request["n_items"] == 400 and request["n_atoms"] == 12:
            raise speed_worker.WorkerFailed("ended by signal 9, perhaps for want of memory")
        return call_here(task, request)

    monkeypatch.setattr(speed_growth, "call", call)
    measured = speed_growth.growth(TINY, [1], silent)
    assert [run["n_items"] for run in measured["items"]] == [100, 100]
    assert [run["n_atoms"] for run in measured["atoms"]] == [6, 6]
    assert len(measured["failed"]) == 2 and "signal 9" in measured["failed"][0]


def test_quality_stops_the_clock_at_the_target():
    answer = call_here("quality", {"plan": asdict(TINY), "keep": 0.2, "threads": 1})
    assert [point["sweep"] for point in answer["curve"]] == [1, 2, 3, 4]
    assert answer["reached"]["seconds"] == answer["curve"][answer["reached"]["sweep"] - 1]["seconds"]
    assert answer["curve"][0]["draw"] == pytest.approx(answer["curve"][0]["mean"])
    assert list(answer["psnr_of_seeds"]) == [1, 2, 3]
    assert len(set(answer["psnr_of_seeds"].values())) == 3 and min(answer["psnr_of_seeds"].values()) > 5
    never = asdict(replace(TINY, target_psnr=99.0))
    assert call_here("quality", {"plan": never, "keep": 0.2, "threads": 1})["reached"] is None


def test_startup_times_a_real_process():
    assert 0 < speed_startup._seconds(speed_startup._IMPORT) < 5


def test_peers_that_are_not_installed_get_one_sentence(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    measured = speed_peers.peers(replace(TINY, peers=True), 1, silent)
    assert list(measured) == ["scikit-learn", "bm3d", "bm4d", "tensorly"]
    for name, one in measured.items():
        assert one == {"skipped": f"{name} is not installed: {speed_peers._HOW_TO_GET[name]}."}


def test_a_broken_peer_does_not_end_the_bench(monkeypatch):
    def broken(*_):
        raise OSError("a library is missing")

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: True)
    monkeypatch.setattr(speed_peers, "dictionary_learning", broken)
    monkeypatch.setattr(speed_peers, "denoising", broken)
    measured = speed_peers.peers(replace(TINY, peers=True), 1, silent)
    assert measured["bm3d"] == {"skipped": "bm3d is installed but failed (OSError)."}


def test_dictionary_learning_of_scikit_learn():
    pytest.importorskip("sklearn")
    source = speed_problems.Source(speed_problems.volume((40, 40)), "made up")
    one = speed_peers.dictionary_learning(source, replace(TINY, peer_seconds=0.2), 1, silent)
    assert [point["sweep"] for point in one["kruskal_curve"]] == [1, 2, 3]
    assert one["target_rmse"] == one["kruskal_curve"][-1]["rmse"] < one["kruskal_curve"][0]["rmse"]
    last = one["peer_curve"][-1]
    assert last["seconds"] == pytest.approx(last["fit_seconds"] + last["encode_seconds"])
    assert (one["peer_seconds"] is None) == (one["peer_best_rmse"] > one["target_rmse"])


def test_denoising_beside_a_peer(monkeypatch):
    class Module:
        @staticmethod
        def bm3d(noisy, sigma):
            time.sleep(0.01)
            clean = speed_problems.mirrored(source.values, noisy.shape)
            return clean + 0.5 * (noisy - clean)

    monkeypatch.setattr(importlib, "import_module", lambda name: Module)
    source = speed_problems.Source(speed_problems.volume((32, 32)), "made up")
    one = speed_peers.denoising("bm3d", source, TINY, 1, silent)
    assert one["noisy_psnr"] == pytest.approx(20 * np.log10(255 / 25), abs=0.5)
    assert one["peer_psnr"] >= one["noisy_psnr"] + 6 and one["peer_seconds"] >= 0.01
    assert one["kruskal_seconds"] > 0 and one["kruskal_sweeps"] == 4


def test_a_decomposition_beside_a_peer(monkeypatch):
    class Decomposition:
        @staticmethod
        def parafac(values, rank, n_iter_max, mask, **options):
            assert rank == TINY.n_terms and values.shape == mask.shape == (TINY.decomposed_side,) * 3
            time.sleep(0.01 * n_iter_max)

    monkeypatch.setitem(sys.modules, "tensorly", Decomposition)
    monkeypatch.setitem(sys.modules, "tensorly.decomposition", Decomposition)
    one = speed_decomposition.decomposition(TINY, 1, silent)
    assert one["iteration_seconds"] == pytest.approx(0.01, rel=0.5)
    assert one["sweep_to_iteration"] == pytest.approx(one["sweep_seconds"] / one["iteration_seconds"])
    assert one["observed_share"] == pytest.approx(0.1, abs=0.05)
    aims = speed_goals.goals({"peers": {"tensorly": one | {"sweep_to_iteration": 5.1}}})
    assert [(aim.measured, aim.met) for aim in aims] == [(5.1, False)]


def test_online_beside_full_sweeps():
    found = speed_online.online(TINY, 1, lambda sentence: None)
    assert [run["keep"] for run in found["runs"]] == [0.2, 0.5]
    for run in found["runs"]:
        assert [one["number"] for one in run["batches"]] == list(TINY.online_epochs)
        assert all(one["to_sweeps"] > 0 and one["psnr"] > 5 for one in run["batches"])
    assert len(speed_goals.goals({"online": found})) == 2
    speed_tables.show(new_console(), "online", {"online": found})


@pytest.mark.parametrize("psnr, seconds, reached", [(25.0, 3.0, True), (20.0, 2.0, True), (30.0, 6.0, False)])
def test_seconds_of_full_sweeps_to_the_same_psnr(psnr, seconds, reached):
    sweeps = [{"seconds": 2.0, "psnr": 24.0}, {"seconds": 4.0, "psnr": 26.0}, {"seconds": 6.0, "psnr": 26.5}]
    found = speed_online._beside({"seconds": 1.5, "psnr": psnr}, sweeps)
    assert found == {"sweep_seconds": seconds, "reached": reached, "to_sweeps": 1.5 / seconds}


def test_images_beside_dense_convolutions():
    found = speed_images.images(TINY, 1)
    for what in ("sweep", "step"):
        assert found[what]["to_dense"] == pytest.approx(found[what]["seconds"] / found[what]["dense_seconds"])
    assert found["sweep"]["n_images"] == 30 and found["sweep"]["active_per_image"] > 0
    assert found["picture_sweep"]["n_images"] == 3 and found["picture_sweep"]["to_dense"] > 0
    assert len(speed_goals.goals({"images": found})) == 3


def test_dense_convolutions_are_transposes():
    """<columns(x) a, w> = <x, scatter(w a^T)>, and the correlation is that of its definition."""
    random = np.random.default_rng(0)
    x, atoms = random.standard_normal((2, 6, 7, 3)), random.standard_normal((2 * 2 * 3, 4))
    maps = speed_images._columns(x, 2) @ atoms
    by_hand = np.einsum("xyc,xyck->k", x[1, 3:5, 4:6], atoms.reshape(2, 2, 3, 4))
    assert np.allclose(maps.reshape(2, 5, 6, 4)[1, 3, 4], by_hand)
    weights = random.standard_normal(maps.shape)
    back = speed_images._scatter(weights @ atoms.T, x.shape, 2)
    assert np.sum(maps * weights) == pytest.approx(np.sum(x * back))


def test_the_clock_takes_the_fastest_interval():
    clock = speed_images.Clock()
    clock.told = [(1, 0.0), (2, 9.0), (4, 11.0), (5, 12.5)]
    assert clock.seconds_of_one(2) == 1.0 and clock.seconds_of_one(1) == 1.5


def test_made_up_images(monkeypatch, tmp_path):
    monkeypatch.setenv("KRUSKAL_DATA", str(tmp_path))
    source = speed_images.digits(5)
    assert source.values.shape == (5, 28, 28) and "made-up" in source.name
    assert source.values.min() >= 0.0 and 0.5 < source.values.max() <= 1.0


def test_goals():
    met = speed_goals.Goal("a ratio", 3.9, None, 4.0)
    assert met.met and not met._replace(measured=4.1).met and not met._replace(measured=None).met
    assert speed_goals.Goal("a speed-up", 1.9, 1.8, None).to_json()["met"]
    assert speed_goals.goals({}) == []


def test_the_whole_bench_is_saved_and_shown(here, tmp_path, capsys):
    console = new_console()
    sections = []
    for name, results in speed_run.run(TINY, [1], silent):
        sections.append(name)
        speed_run.save(tmp_path / "out", results)
        speed_tables.show(console, name, results)
    assert sections == ["machine", *speed_run.SECTIONS, "goals"]
    text = capsys.readouterr().out
    for part in (
        "codes / product",
        "Growth exponents",
        "seconds of full sweeps to that",
        "dB passed",
        "quick run leaves the peers out",
        "Goals",
    ):
        assert part in text
    saved = json.loads((tmp_path / "out" / "bench.json").read_text())
    assert saved == json.loads(speed_run.as_json(results)) and saved["finished"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["bench.json", "bench.png"]
    assert (tmp_path / "out" / "bench.png").read_bytes().startswith(b"\x89PNG")
    for axis, field in speed_growth.AXES.items():
        sizes = {run[field] for run in saved["growth"][axis]}
        assert len(sizes) == 2
        assert all(run["product_seconds"] > 0 and run["bytes_per_item"] > 0 for run in saved["growth"][axis])


def test_what_is_saved_names_neither_machine_nor_folders(here, tmp_path):
    *_, (_, results) = speed_run.run(TINY, [1], silent)
    text = speed_run.as_json(results)
    assert str(Path.home()) + "/" not in text and str(Path.cwd()) not in text and "site-packages" not in text
    assert platform.node() not in re.split(r"\W+", text)
    assert results["machine"]["cores"] >= 1 and "numba" in results["machine"]["versions"]
