"""info: arrays, results and checkpoints."""

import json

import numpy as np
from cli_tools import SMALL


def test_array_with_mask(cli, damaged, picture):
    found = json.loads(cli("info", "damaged.npz", "--json").out)
    assert found["shape"] == [20, 20] and found["dtype"] == "float64" and found["result_dtype"] == "uint8"
    assert found["share_observed"] == damaged.observed.mean()
    assert found["minimum"] == damaged.values[damaged.observed].min()
    assert found["suggested_patch"] == [12, 12]  # as much is missing
    assert found["n_items"] == 9 * 9


def test_table_for_people(cli, picture):
    answer = cli("info", "picture.png")
    rows = dict(line.split(maxsplit=1) for line in answer.out.splitlines())
    assert rows["shape"] == "20x20" and rows["dtype"] == "uint8"
    assert rows["minimum"] == str(picture.min())
    assert answer.status == 0 and answer.err == ""


def test_strange_values_are_described_not_refused(cli, tmp_path):
    np.save(tmp_path / "x.npy", np.array([[np.nan, np.inf, 2.0], [np.nan, -np.inf, 4.0]]))
    found = json.loads(cli("info", "x.npy", "--json").out)
    assert found["infinite"] == 2 and found["mean"] == 3.0
    assert found["share_observed"] == 4 / 6
    np.save(tmp_path / "x.npy", np.full((2, 3), np.nan))
    assert json.loads(cli("info", "x.npy", "--json").out)["minimum"] is None


def test_key(cli, refused, tmp_path):
    np.savez(tmp_path / "two.npz", a=np.zeros((3, 3)), b=np.ones(7))
    assert json.loads(cli("info", "two.npz", "--key", "b", "--json").out)["shape"] == [7]
    assert "choose one by --key from a (3x3), b (7)" in refused("info", "two.npz")


def test_saved_result(cli, picture):
    assert cli("denoise", "picture.png", "-o", "out.png", "--save", "all.npz", *SMALL).status == 0
    found = json.loads(cli("info", "all.npz", "--json").out)
    assert found["format"] == "result of kruskal"
    assert found["shape"] == [20, 20] and found["n_items"] == 81 and found["noise_std"] > 0
    assert found["model"] == "kfa" and found["sweeps"] == 5
    assert json.loads(cli("info", "all.npz", "--key", "mean", "--json").out)["format"] == "npz"


def test_checkpoint(cli, refused, picture, tmp_path):
    assert cli("denoise", "picture.png", "-o", "out.png", "--checkpoint", "run", *SMALL).status == 0
    found = json.loads(cli("info", "run", "--json").out)
    assert found["finished"] is True and found["sweeps_done"] == 5 and found["command"] == "denoise"
    assert found["output"] == str(tmp_path / "out.png") and "go_on_with" not in found
    job = tmp_path / "run" / "job.json"
    job.write_text(job.read_text().replace('"finished": true', '"finished": false'))
    assert "kruskal resume run" in cli("info", "run").out
    (tmp_path / "run" / "state.json").write_text("{")
    assert "damaged" in refused("info", "run")


def test_what_cannot_be_described(refused, tmp_path):
    (tmp_path / "broken.npz").write_bytes(b"PK nonsense")
    (tmp_path / "junk.npz").write_bytes(b"PK\x03\x04 nonsense")  # begins like a zip
    np.savez(tmp_path / "cut.npz", mean=np.arange(500.0))
    (tmp_path / "cut.npz").write_bytes((tmp_path / "cut.npz").read_bytes()[:300])
    (tmp_path / "folder").mkdir()
    assert refused("info", "junk.npz").startswith("cannot read 'junk.npz': ")
    assert refused("info", "cut.npz").startswith("cannot read 'cut.npz': ")
    assert "broken.npz" in refused("info", "broken.npz")
    assert "absent.npy" in refused("info", "absent.npy")
    assert "folder" in refused("info", "folder")
