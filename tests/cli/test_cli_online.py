"""kruskal inpaint --online."""

import json

import numpy as np
import pytest

SMALL = ("--patch", "4x4", "--stride", "2", "--atoms", "8", "--threads", "1")
RUN = ("inpaint", "damaged.npz", "-o", "out.npy", *SMALL, "--online", "--batch-size", "30", "--epochs", "3")


@pytest.mark.parametrize("words, kind, passes", [((), "exact", 1), (("--surrogate", "cdf"), "cdf", 3)])
def test_online(cli, damaged, tmp_path, words, kind, passes):
    answer = cli(*RUN, *words, "--json", "--save", "all.npz", "--report", "all.html", "--figures", "figures")
    assert answer.status == 0, answer.err
    summary = json.loads(answer.out)
    assert (summary["online"], summary["batches"], summary["passes"]) == (kind, 3, passes)
    assert (summary["epochs"], summary["burn_in"], summary["kept"]) == (3, 1, 2)
    assert "sweeps" not in summary
    told = json.loads(cli("info", "all.npz", "--json").out)
    assert (told["epochs"], told["batches"], told["batch_size"]) == (3, 3, summary["batch_size"])
    assert "sweeps" not in told
    assert "kruskal: batch 9/9, epoch 3, noise" in answer.err
    with np.load(tmp_path / "all.npz") as archive:
        assert archive["trace_noise_std"].shape == (9,)
    text = cli(*RUN, *words, "--quiet", "--passes", "2")
    assert text.status == 0 and text.out == text.err == ""


def test_summary_and_resume(cli, damaged, tmp_path):
    answer = cli(*RUN, "--surrogate", "incremental")
    assert "kfa: 3 epochs of 3 batches (incremental) over 81 patches of 4x4" in answer.out
    one = cli(
        "inpaint", "damaged.npz", "-o", "o.npy", *SMALL, "--online", "--batch-size", "99", "--epochs", "2"
    )
    assert "kfa: 2 epochs of 1 batch (exact)" in one.out
    assert "one batch holds all 81 patches, not 99 as asked for" in one.err
    before = (tmp_path / "out.npy").read_bytes()
    assert cli(*RUN, "--surrogate", "incremental", "--checkpoint", "run").status == 0
    assert (tmp_path / "out.npy").read_bytes() == before
    told = json.loads(cli("info", "run", "--json").out)
    assert (told["batches_done"], told["epochs"]) == (9, 3) and "sweeps_done" not in told
    (tmp_path / "out.npy").unlink()
    assert cli("resume", "run").status == 0
    assert (tmp_path / "out.npy").read_bytes() == before


@pytest.mark.parametrize(
    "words, part",
    [
        (
            ("--surrogate", "cdf"),
            "--surrogate is for learning online: give --online as well",
        ),
        (("--batch-size", "10"), "--batch-size is for learning online"),
        (("--epochs", "10"), "--epochs is for learning online"),
        (("--online", "--batch-size", "0"), "--batch-size must be at least 1, not 0."),
        (("--online", "--epochs", "0"), "--epochs must be at least 1, not 0."),
        (("--online", "--epochs", "2", "--burn-in", "2"), "--burn-in must be smaller than --epochs"),
        (("--online", "--sweeps", "5"), "--sweeps is not for learning online: give --epochs instead"),
    ],
)
def test_mistakes(refused, damaged, words, part):
    assert part in refused("inpaint", "damaged.npz", "-o", "out.npy", *SMALL, *words)
