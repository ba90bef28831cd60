"""inpaint and denoise, end to end on small arrays."""

import json
from pathlib import Path

import numpy as np
import pytest
from cli_tools import SMALL, listing

from kruskal import data, restore
from kruskal.report import psnr

KEYS = {
    *(name + which for name in ("psnr", "ssim", "rrse") for which in ("", "_observed", "_missing")),
    *(
        "coverage",
        "coverage_std",
        "noise_std",
        "seconds",
        "sweeps",
        "n_items",
        "n_atoms",
        "n_atoms_used",
        "rank_histogram",
    ),
    *("alpha", "seed", "version", "model", "patch_shape", "rank", "threads"),
}


def refuse_constants(word):
    raise AssertionError(f"{word} is not JSON")


def parsed(text):
    return json.loads(text, parse_constant=refuse_constants)


def test_everything_that_can_be_written(cli, damaged, picture, tmp_path):
    answer = cli(
        *("inpaint", "damaged.npz", "-o", "out.png", "--reference", "picture.png", "--std", "std.tif"),
        *("--figures", "pictures", "--report", "page.html", "--save", "all.npz", *SMALL),
    )
    assert answer.status == 0, answer.err
    restored = data.read(tmp_path / "out.png")
    assert restored.values.shape == picture.shape and restored.values.dtype == np.uint8
    std = data.read(tmp_path / "std.tif").values
    assert std.dtype == np.float32 and (std > 0).all()
    with np.load(tmp_path / "all.npz") as saved:
        np.testing.assert_array_equal(restored.values, np.clip(np.rint(saved["mean"]), 0, 255))
        np.testing.assert_array_equal(std, saved["std"].astype(np.float32))
    page = (tmp_path / "page.html").read_text()
    assert "damaged.npz" in page and "kruskal inpaint damaged.npz -o out.png" in page
    assert {"dictionary.png", "ranks.png", "restoration.png", "traces.png", "uncertainty.png"} == {
        path.name for path in (tmp_path / "pictures").iterdir()
    }
    assert not [name for name in listing(tmp_path) if "kruskal-" in name]
    assert "PSNR" in answer.out and "of 8 atoms used" in answer.out
    assert all(name in answer.out for name in ("out.png", "std.tif", "pictures", "page.html", "all.npz"))


def test_observed_entries_are_kept(cli, damaged, tmp_path):
    """In the result and in what is saved; the gaps are filled as ever."""
    files = ("-o", "out.npy", "--std", "std.npy", "--save", "all.npz", "--reference", "picture.png")
    plain = parsed(cli("inpaint", "damaged.npz", *files, "--json", *SMALL).out)
    filled, seen = np.load(tmp_path / "out.npy"), damaged.observed
    answer = cli("inpaint", "damaged.npz", *files, "--json", "--keep-observed", *SMALL)
    assert answer.status == 0, answer.err
    kept, std = np.load(tmp_path / "out.npy"), np.load(tmp_path / "std.npy")
    np.testing.assert_array_equal(kept[seen], np.clip(np.rint(damaged.values[seen]), 0, 255))
    np.testing.assert_array_equal(kept[~seen], filled[~seen])
    assert (std[seen] == 0.0).all() and (std[~seen] > 0.0).all()
    with np.load(tmp_path / "all.npz") as saved:
        np.testing.assert_array_equal(saved["mean"][seen], damaged.values[seen])
    told = parsed(answer.out)
    assert told["psnr_missing"] == plain["psnr_missing"] and told["coverage"] == plain["coverage"]
    assert told["psnr_observed"] != plain["psnr_observed"]


@pytest.mark.parametrize(
    "command, said", [("denoise", "it is for inpaint"), ("inpaint", "nothing of picture.png is missing")]
)
def test_nothing_would_be_done(refused, picture, command, said):
    sentence = refused(command, "picture.png", "-o", "out.png", "--keep-observed", *SMALL)
    assert "--keep-observed" in sentence and said in sentence


def test_json_is_one_object_with_all_keys(cli, damaged, picture, tmp_path):
    answer = cli(
        *("inpaint", "damaged.npz", "-o", "out.npy", "--reference", "picture.png", "--save", "all.npz"),
        *("--json", "--seed", "7", *SMALL),
    )
    found = parsed(answer.out)
    assert answer.out.count("\n") == 1
    assert set(found) >= KEYS
    assert found["seed"] == 7 and found["sweeps"] == 5 and found["patch_shape"] == [4, 4]
    assert found["n_items"] == 81 and found["n_atoms"] == 8 and found["threads"] == 1
    assert sum(found["rank_histogram"].values()) == found["n_atoms_used"]
    with np.load(tmp_path / "all.npz") as saved:
        mean, std, noise = saved["mean"], saved["std"], float(saved["noise_std"])
    missing = ~damaged.observed
    clipped = np.clip(mean, 0, 255)
    assert found["psnr"] == pytest.approx(psnr(clipped, picture))
    assert found["psnr_missing"] == pytest.approx(psnr(clipped, picture, where=missing))
    within = np.abs(mean - picture)[missing] <= 2 * np.sqrt(std[missing] ** 2 + noise**2)
    assert found["coverage"] == pytest.approx(within.mean())
    within = np.abs(mean - picture)[missing] <= 2 * std[missing]
    assert found["coverage_std"] == pytest.approx(within.mean())
    assert found["noise_std"] == pytest.approx(noise)


def test_json_without_reference_has_no_scores(cli, picture):
    found = parsed(cli("denoise", "picture.png", "-o", "out.png", "--json", *SMALL).out)
    assert not {"psnr", "ssim", "rrse", "coverage"} & set(found)
    assert found["noise_std"] > 0


def test_json_of_complete_data_with_reference_has_no_coverage_and_no_nan(cli, picture):
    words = ("denoise", "picture.png", "-o", "out.png", "--reference", "picture.png", "--json", *SMALL)
    found = parsed(cli(*words).out)
    assert found["psnr_missing"] is None and "coverage" not in found
    assert found["psnr"] == found["psnr_observed"] > 10


def test_bpfa_has_no_alpha_and_no_rank(cli, picture):
    words = ("denoise", "picture.png", "-o", "out.png", "--model", "bpfa", "--json", *SMALL)
    found = parsed(cli(*words).out)
    assert found["alpha"] is None and found["rank"] is None and found["model"] == "bpfa"


def test_progress_goes_to_standard_error_and_quiet_says_nothing(cli, picture):
    words = ("denoise", "picture.png", "-o", "out.png", *SMALL)
    loud = cli(*words)
    assert "sweep 1/5" in loud.err and "sweep 5/5" in loud.err and "noise" in loud.out
    assert cli(*words, "--quiet") == (0, "", "")


def test_mask_file_and_its_meaning(cli, picture, tmp_path):
    mask = np.random.default_rng(0).random(picture.shape) < 0.5
    data.write(tmp_path / "observed.png", 255 * mask.astype(np.uint8), dtype="uint8")
    np.save(tmp_path / "missing.npy", ~mask)
    spoiled = np.where(mask, picture, 0).astype(np.uint8)
    data.write(tmp_path / "spoiled.png", spoiled, dtype="uint8")
    common = ("-o", "out.npy", *SMALL)
    outputs = []
    for words in (
        ("picture.png", "--mask", "observed.png"),
        ("spoiled.png", "--mask", "observed.png"),
        ("picture.png", "--mask", "missing.npy", "--mask-is", "missing"),
        ("picture.png",),
    ):
        assert cli("inpaint", *words, *common).status == 0
        outputs.append((tmp_path / "out.npy").read_bytes())
    assert outputs[0] == outputs[1] == outputs[2] != outputs[3]


def test_nan_is_missing_and_key_chooses(cli, picture, tmp_path):
    values = picture.astype(float)
    values[3:6, 4] = np.nan
    np.savez(tmp_path / "two.npz", first=values, second=np.zeros(5))
    assert cli("inpaint", "two.npz", "--key", "first", "-o", "out.npy", *SMALL).status == 0
    assert np.isfinite(np.load(tmp_path / "out.npy")).all()


def test_an_item_without_observed_entries_is_restored(cli, picture, tmp_path):
    values = picture.astype(float)
    values[:8, :8] = np.nan
    np.save(tmp_path / "hole.npy", values)
    assert cli("inpaint", "hole.npy", "-o", "out.npy", *SMALL).status == 0
    assert np.isfinite(np.load(tmp_path / "out.npy")).all()


def test_an_existing_output_is_overwritten(cli, picture, tmp_path):
    (tmp_path / "out.npy").write_text("old")
    assert cli("denoise", "picture.png", "-o", "out.npy", *SMALL).status == 0
    assert np.load(tmp_path / "out.npy").shape == picture.shape


def test_reference_that_is_partly_known(cli, damaged, picture, tmp_path):
    reference = picture.astype(float)
    reference[~damaged.observed] = np.nan
    np.save(tmp_path / "partly.npy", reference)
    found = parsed(
        cli("inpaint", "damaged.npz", "-o", "o.npy", "--reference", "partly.npy", "--json", *SMALL).out
    )
    assert found["psnr_missing"] is None and found["psnr"] > 0 and "coverage" not in found


def test_options_reach_the_library(cli, picture, monkeypatch):
    given = {}
    real = restore.inpaint

    def spy(values, **options):
        given.update(options)
        return real(values, **options)

    monkeypatch.setattr(restore, "inpaint", spy)
    answer = cli(
        *("inpaint", "picture.png", "-o", "out.png", "--patch", "4x5", "--stride", "2x3", "--atoms", "6"),
        *("--rank", "3", "--alpha", "2.5", "--usage-prior", "6,1", "--codes", "uncollapsed", "--sweeps", "4"),
        *("--burn-in", "1", "--start", "random", "--seed", "3", "--threads", "1", "--channels", "cut"),
        *("--model", "kfa", "--checkpoint", "run", "--checkpoint-seconds", "9"),
        *("--setting", "paper", "--regions", "3"),
        *("--grouping", "likeness", "--counts"),
        *("--no-auto", "--until-converged", "--time-budget", "60", "--annealing", "1"),
    )
    assert answer.status == 0, answer.err
    for name in ("observed", "progress"):
        assert given.pop(name) is not None
    wanted = {"patch_shape": (4, 5), "stride": (2, 3), "n_atoms": 6, "rank": 3, "alpha": 2.5, "model": "kfa"}
    wanted |= {
        "usage_prior": (6.0, 1.0),
        "codes": "uncollapsed",
        "sweeps": 4,
        "burn_in": 1,
        "seed": 3,
        "annealing": 1,
    }
    wanted |= {
        "setting": "paper",
        "sparsity": None,
        "regions": 3,
        "grouping": "likeness",
        "auto": False,
        "counts": True,
    }
    wanted |= {"until_converged": True, "time_budget": 60.0, "dictionary": None, "adapt": False}
    wanted |= {"online": None, "batch_size": None, "epochs": None, "passes": None}
    wanted |= {"start": "random", "threads": 1, "channels": "cut", "checkpoint_seconds": 9.0}
    assert given == {**wanted, "checkpoint": Path("run")}


def test_number_of_threads_does_not_change_a_byte(cli, damaged, tmp_path):
    written = []
    for threads in ("1", "2"):
        words = ("inpaint", "damaged.npz", "-o", "out.npy", "--std", "std.npy", "--save", "all.npz", *SMALL)
        assert cli(*words[:-1], threads).status == 0
        written.append([(tmp_path / name).read_bytes() for name in ("out.npy", "std.npy", "all.npz")])
    assert written[0] == written[1]


def test_a_whole_array_is_decomposed(cli, tmp_path):
    """The model mgp-cp with a report and everything saved; options of dictionaries are refused."""
    random = np.random.default_rng(0)
    x = np.einsum("ir,jr,kr->ijk", *(random.normal(size=(size, 2)) for size in (9, 8, 7)))
    x[random.random(x.shape) < 0.4] = np.nan
    np.save(tmp_path / "x.npy", x)
    common = ("inpaint", "x.npy", "-o", "y.npy", "--model", "mgp-cp")
    answer = cli(
        *common, "--sweeps", "60", "--rank", "5", "--report", "page.html", "--save", "all.npz"
    )  # fmt: skip
    assert answer.status == 0, answer.err
    assert "60 sweeps over an array of 9x8x7" in answer.out and "rank 2 of at most 5" in answer.out
    assert np.isfinite(np.load(tmp_path / "y.npy")).all()
    assert "<dt>Rank</dt><dd>2</dd>" in (tmp_path / "page.html").read_text()
    refused = cli(*common, "--atoms", "8")
    assert refused.status == 2 and "--atoms is no option of the model mgp-cp" in refused.err
