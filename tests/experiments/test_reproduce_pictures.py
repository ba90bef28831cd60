"""dictionaries and pictures, and what they share: kept arrays, galleries, other programs."""

import io
import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image
from reproduce_example import PNG, make_context, short_runs, small_arrays

from kruskal.data import corrupt
from kruskal.experiments import dictionaries, gallery, peers, pictures, registry, sample_pictures
from kruskal.report import psnr

MINE = ("dictionaries", "pictures")


@pytest.fixture
def calls(monkeypatch):
    """Short chains on a small picture."""
    monkeypatch.setattr(pictures, "picture", lambda name: small_arrays()["barbara256"])
    return short_runs(monkeypatch)


@pytest.fixture
def fake_bm3d(monkeypatch):
    told = []

    def bm3d(noisy, sigma):
        told.append(sigma)
        return noisy + 2.0

    monkeypatch.setitem(sys.modules, "bm3d", SimpleNamespace(bm3d=bm3d))
    monkeypatch.setattr(pictures, "installed_version", lambda peer: "9.9")
    return told


def run(experiment, key, folder):
    cell = next(cell for cell in experiment.cells(False, None) if cell.key == key)
    return experiment.run(cell, make_context(folder))


@pytest.mark.parametrize("name", MINE)
def test_quick_cells_are_among_the_others(name):
    experiment = registry.get(name)
    everything = {cell.key: cell for cell in experiment.cells(False, 2)}
    quick = experiment.cells(True, 2)
    assert 0 < len(quick) < len(everything) == len(experiment.cells(False, 2))
    assert all(everything[cell.key] == cell for cell in quick)
    for cell in everything.values():
        assert json.loads(json.dumps(cell.options)) == cell.options
        assert cell.key.endswith(f"-seed{cell.options['seed']}")


@pytest.mark.parametrize("name", MINE)
def test_nothing_is_shown_of_nothing(name, tmp_path):
    experiment = registry.get(name)
    assert experiment.figure({}, tmp_path) is None and experiment.tables({}) == []


# dictionaries


def atoms_of_rank(*strengths):
    """Matrices 8x8 with these singular values."""
    random = np.random.default_rng(0)
    made = []
    for values in strengths:
        left, right = (np.linalg.qr(random.standard_normal((8, 8)))[0] for _ in range(2))
        made.append((left[:, : len(values)] * values) @ right[:, : len(values)].T)
    return np.array(made)


def test_ranks_at_absolute_and_relative_thresholds():
    atoms = atoms_of_rank([1.0], [1.0, 0.5], [1.0, 0.5, 1e-3], [1e-3, 1e-4, 1e-7])
    assert dictionaries.shares_by_rank(atoms, 1e-6, False) == {"1": 0.25, "2": 0.5, "3": 0.25}
    assert dictionaries.shares_by_rank(atoms, 1e-6, True) == {"1": 0.25, "2": 0.25, "3": 0.5}
    assert dictionaries.shares_by_rank(atoms, 1e-2, True) == {"1": 0.25, "2": 0.75}
    assert dictionaries.shares_by_rank(atoms[:0], 1e-2, True) == {}
    assert set(dictionaries.THRESHOLDS.values()) == {(1e-6, False), (1e-6, True), (1e-2, True)}


def test_multilinear_ranks_of_colour_atoms():
    random = np.random.default_rng(1)
    plain = np.einsum("i,j,c->ijc", *(random.standard_normal(size) for size in (7, 7, 3)))
    coloured = np.einsum("ij,c->ijc", random.standard_normal((7, 7)), random.standard_normal(3))
    atoms = np.stack([plain, coloured, random.standard_normal((7, 7, 3))])
    assert dictionaries.multilinear_ranks(atoms, 1e-6, True).tolist() == [[1, 1, 1], [7, 7, 1], [7, 7, 3]]


def test_cells_of_dictionaries():
    cells = {cell.key: cell.options for cell in dictionaries.EXPERIMENT.cells(False, None)}
    ranks = {int(key.split("-rank")[1].split("-")[0]) for key in cells if key.startswith("barbara-kfa-paper")}
    assert ranks == {1, 2, 4, 7, 8} and len(cells) == 4 + 4 + 4
    castle = cells["castle-kfa-paper-rank10-seed1"]
    assert castle["dataset"] == "castle" and castle["inpaint"]["patch_shape"] == [7, 7, 3]
    assert cells["barbara-bpfa-default-seed1"]["inpaint"] == {"model": "bpfa"}


def test_dictionaries_of_small_pictures(calls, tmp_path):
    keys = ("barbara-kfa-paper-rank2-seed1", "barbara-bpfa-paper-seed1", "castle-kfa-paper-rank10-seed1")
    results = {key: run(dictionaries.EXPERIMENT, key, tmp_path) for key in keys}
    assert calls[0]["rank"] == 2 and calls[0]["observed"].all()
    for result in results.values():
        assert all(sum(shares.values()) == pytest.approx(1.0) for shares in result["ranks"].values())
    assert set(results[keys[0]]["ranks"]["absolute 1e-6"]) <= {"1", "2"}
    assert results[keys[1]]["ranks"]["relative 1e-6"] == {"8": 1.0}
    figure = Image.open(io.BytesIO(dictionaries.EXPERIMENT.figure(results, tmp_path)))
    one = Image.open(io.BytesIO(dictionaries.EXPERIMENT.figure({keys[0]: results[keys[0]]}, tmp_path)))
    assert figure.height > one.height
    barbara, castle = dictionaries.EXPERIMENT.tables(results)
    assert barbara.columns == ("", "1", "2", "3", "4", "5", "6", "7", "8", "4 or 5")
    rows = {row[0]: row[1:] for row in barbara.rows}
    assert rows["BPFA, paper, relative 1e-6"][7].ours == 100.0
    assert rows["the paper's KFA"][-1].ours == 96.0 and rows["the paper's BPFA"][7].ours == 100.0
    assert len(castle.rows) == 3 and "unfoldings" in castle.notes[1]


def test_the_middle_column_adds_ranks_4_and_5():
    shares = {name: {"4": 0.5, "5": 0.25, "7": 0.25} for name in dictionaries.THRESHOLDS}
    results = {"barbara-kfa-paper-rank7-seed1": {"ranks": shares}}
    (table,) = dictionaries.EXPERIMENT.tables(results)
    assert [score.ours for score in table.rows[0][1:]] == [0, 0, 0, 50, 25, 0, 25, 0, 75]


# pictures


def test_sample_pictures_are_grey_and_of_one_size():
    from skimage import data

    for name in sample_pictures.PICTURES:
        values = sample_pictures.picture(name)
        assert values.shape == (256, 256) and values.dtype == np.uint8 and values.std() > 5, name
    assert len(sample_pictures.PICTURES) == len(set(sample_pictures.PICTURES)) >= 12
    camera = data.camera().astype(float)
    assert sample_pictures.picture("camera")[3, 5] == np.rint(camera[6:8, 10:12].mean())
    assert np.array_equal(sample_pictures.picture("coins"), data.coins()[23:279, 64:320])


def test_cells_of_pictures(monkeypatch):
    monkeypatch.setattr(pictures, "installed_version", lambda peer: "9.9")
    cells = {cell.key: cell.options for cell in pictures.EXPERIMENT.cells(False, None)}
    assert len(cells) == 12 * (3 * 2 + 2 * 3)
    ours = cells["camera-kfa-default-noise25-seed1"]
    assert ours["inpaint"] == {"model": "kfa"} and (ours["keep"], ours["noise"]) == (1.0, 25)
    theirs = cells["camera-bm3d-noise25-seed1"]
    assert theirs["peer_version"] == "9.9" and "setting" not in theirs and theirs["noise"] == 25
    monkeypatch.setattr(pictures, "installed_version", lambda peer: None if peer == "bm3d" else "9.9")
    left = {cell.key for cell in pictures.EXPERIMENT.cells(False, None)}
    assert set(cells) - left == {key for key in cells if "bm3d" in key}
    (table,) = pictures.EXPERIMENT.tables({"camera-kfa-default-noise25-seed1": {"psnr": 30.0}})
    assert any("bm3d is not installed" in note for note in table.notes)


def test_all_methods_see_the_same_damage(calls, fake_bm3d, tmp_path):
    truth = small_arrays()["barbara256"]
    theirs = run(pictures.EXPERIMENT, "moon-bm3d-noise25-seed1", tmp_path)
    assert fake_bm3d == [25]
    noisy = corrupt(truth, noise=25, seed=1).values
    assert theirs["psnr"] == pytest.approx(psnr(np.clip(noisy + 2, 0, 255), truth))
    ours = run(pictures.EXPERIMENT, "moon-kfa-default-keep20-seed1", tmp_path)
    assert np.array_equal(calls[0]["observed"], corrupt(truth, keep=0.2, seed=1).observed)
    assert 0 <= ours["coverage"] <= 1 and ours["settings"]["model"] == "kfa"
    filled = run(pictures.EXPERIMENT, "moon-biharmonic-keep20-seed1", tmp_path)
    assert filled["psnr"] > 15
    kept = np.load(tmp_path / "moon-biharmonic-keep20-seed1.npz")["mean"]
    observed = calls[0]["observed"]
    assert np.array_equal(kept[observed], truth[observed]) and kept.dtype == np.uint8
    results = {
        "moon-bm3d-noise25-seed1": theirs,
        "moon-kfa-default-keep20-seed1": ours,
        "moon-biharmonic-keep20-seed1": filled,
    }
    figure = Image.open(io.BytesIO(pictures.EXPERIMENT.figure(results, tmp_path)))
    assert figure.height > 6 * truth.shape[0]
    run(pictures.EXPERIMENT, "moon-biharmonic-keep50-seed1", tmp_path)
    assert not (tmp_path / "moon-biharmonic-keep50-seed1.npz").exists()


def invented_pictures():
    """KFA 1 dB below BM3D where a picture had a say, else 0.5 above; 2 above BPFA, 3 above biharmonic."""
    results = {}
    for place, name in enumerate(sample_pictures.PICTURES):
        behind = 1.0 if name in sample_pictures.HAD_A_SAY else -0.5
        for noise in (10, 25, 50):
            results[f"{name}-bm3d-noise{noise}-seed1"] = {"psnr": 40.0 - noise / 5}
            results[f"{name}-kfa-default-noise{noise}-seed1"] = {"psnr": 40.0 - noise / 5 - behind}
        for keep in (20, 50):
            for method, lead in (("kfa-default", 0), ("bpfa-default", 2), ("biharmonic", 3)):
                run = {"psnr": 30.0 + place - lead}
                if method != "biharmonic":
                    run["coverage"] = 0.89 + place / 100
                results[f"{name}-{method}-keep{keep}-seed1"] = run
    return results


def test_tables_of_pictures():
    results = invented_pictures()
    assert set(results) == {cell.key for cell in pictures.EXPERIMENT.cells(False, 1)} | {
        key for key in results if "bm3d" in key
    }
    denoising, inpainting, coverage = pictures.EXPERIMENT.tables(results)
    rows = {row[0]: [entry.ours for entry in row[1:]] for row in denoising.rows}
    assert rows["camera *"] == [37.0, 38.0, -1.0, 34.0, 35.0, -1.0, 29.0, 30.0, -1.0]
    assert rows["mean"][2::3] == [-0.25] * 3 and rows["mean without *"][2::3] == [0.5] * 3
    assert any("20 %, KFA less BPFA: mean +2.00 dB over 12 pictures" in note for note in inpainting.notes)
    assert any("50 %, KFA less biharmonic: mean +3.00 dB" in note for note in inpainting.notes)
    rows = {row[0]: [entry.ours for entry in row[1:]] for row in coverage.rows}
    assert rows["least"] == pytest.approx([89.0] * 4) and rows["most"] == pytest.approx([100.0] * 4)
    assert "KFA: 6 of 24 outside 90 to 98 %" in coverage.notes


def test_a_mean_needs_both_numbers():
    results = invented_pictures()
    del results["camera-bm3d-noise25-seed1"]
    denoising = pictures.EXPERIMENT.tables(results)[0]
    rows = {row[0]: row[1:] for row in denoising.rows}
    assert rows["camera *"][4] is None and rows["camera *"][5] is None
    assert rows["mean"][5].ours == pytest.approx((6 * 0.5 - 5 * 1.0) / 11)


# what they share


def test_kept_arrays_come_back_or_are_missing(tmp_path):
    gallery.keep_arrays(tmp_path, "one", values=np.arange(3), others=np.zeros((2, 2)))
    assert gallery.read_arrays(tmp_path, "one")["values"].tolist() == [0, 1, 2]
    assert gallery.read_arrays(tmp_path, "two") is None
    for content in (b"", b"PK\x03\x04 not a file", (tmp_path / "one.npz").read_bytes()[:60]):
        (tmp_path / "torn.npz").write_bytes(content)
        assert gallery.read_arrays(tmp_path, "torn") is None


def test_a_gallery_shows_pixel_by_pixel():
    checks = np.indices((40, 1000)).sum(axis=0) % 2.0
    hole = np.full((30, 20), np.nan)
    png = gallery.draw_gallery(
        "Title", "subtitle", [[gallery.Tile("a", checks)], [None, gallery.Tile("b", hole)]]
    )
    shown = np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).astype(int)
    left, top = 36, 104 + 30
    assert np.array_equal(shown[top : top + 40, left : left + 1000, 0] > 128, checks > 0.5)
    beside = shown[top + 40 + 24 + 30 + 5, left + 1000 + 24 + 5]
    assert np.abs(beside - [194, 212, 232]).max() <= 1  # nothing is neither black nor white
    assert png.startswith(PNG)


def test_mosaics_hold_every_atom():
    atoms = np.stack([np.full((3, 3), value) for value in range(1, 11)])
    picture = gallery.atom_mosaic(atoms, scale=2, gap=1)
    assert np.nansum(picture == 1.0) == 10 * 36  # constant atoms are white
    colour = gallery.atom_mosaic(np.ones((4, 7, 7, 3)), scale=1, colour=True)
    assert colour.ndim == 3 and np.nansum(colour == 1.0) == 4 * 7 * 7 * 3
    assert gallery.atom_mosaic(np.ones((1, 5, 5, 5, 5)), scale=1, gap=0).shape == (25, 25)


def test_versions_of_peers():
    assert peers.installed_version("biharmonic")[0].isdigit()
    assert "bm3d" in peers.not_installed("bm3d")


def test_a_peer_that_is_not_there(monkeypatch):
    monkeypatch.setattr(peers.importlib.util, "find_spec", lambda name: None)
    assert peers.installed_version("bm4d") is None
