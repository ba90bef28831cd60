"""demo: the same steps as in earnest, with a short chain."""

import re

import numpy as np

from kruskal import data
from kruskal.cli import demo


def test_demo_writes_pictures_and_a_report(cli, monkeypatch, tmp_path):
    short = {"patch_shape": (8, 8, 3), "stride": 6, "n_atoms": 16, "sweeps": 6}
    monkeypatch.setattr(demo, "SETTINGS", short)
    answer = cli("demo", "--out", "show", "--threads", "1")
    assert answer.status == 0, answer.err
    names = {path.name for path in (tmp_path / "show").iterdir()}
    assert names >= {"original.png", "damaged.png", "restored.png", "report.html", "restoration.png"}
    original = data.read(tmp_path / "show" / "original.png").values
    kept = data.read(tmp_path / "show" / "damaged.png").values == original
    assert 0.15 < kept.mean() < 0.35  # a fifth, and what was black anyway
    scores = [float(number) for number in re.findall(r"PSNR +([\d.]+) dB", answer.out)]
    assert len(scores) == 3 and scores[2] > scores[0]
    assert "report.html" in answer.out


def test_demo_refuses_a_bad_folder(refused, tmp_path):
    (tmp_path / "file").write_text("")
    assert "is a file" in refused("demo", "--out", "file")
    assert "does not exist" in refused("demo", "--out", "absent/show")
    assert "--threads" in refused("demo", "--threads", "0")


def test_baselines_keep_what_is_known_and_fill_the_rest():
    rows, columns = np.mgrid[:12, :12]
    plane = np.stack([rows + 2.0 * columns, 3.0 * rows - columns], axis=-1)
    observed = np.random.default_rng(0).random(plane.shape) < 0.5
    observed[[0, 0, -1, -1], [0, -1, 0, -1]] = True
    spoiled = np.where(observed, plane, np.nan)
    filled = demo.baselines(spoiled, observed)
    np.testing.assert_allclose(filled["linear interpolation"], plane)
    mean = filled["mean of the kept values"]
    np.testing.assert_array_equal(mean[observed], plane[observed])
    np.testing.assert_allclose(mean[..., 1][~observed[..., 1]], plane[..., 1][observed[..., 1]].mean())
