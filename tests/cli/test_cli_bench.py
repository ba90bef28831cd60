"""bench: options, what it prints and what it leaves on the disk."""

import json
from dataclasses import replace

import pytest

from kruskal.cli.bench import parse_threads
from kruskal.errors import InputError


@pytest.fixture
def tiny(monkeypatch):
    """The quick plan made tiny, and no processes."""
    from kruskal.experiments.speed import growth, plan, run, startup, worker

    small = replace(
        plan.QUICK, side=24, n_atoms=8, patch_shape=(4, 4), warm_sweeps=1, rounds=1,
        item_counts=(100,), atom_counts=(8,), atom_items=100, patch_shapes=((4, 4),), patch_items=100,
        growth_sweeps=3, quality_sweeps=2, startup_repeats=1, n_images=30, image_sweeps=4, n_trained=40,
        train_steps=60,
    )  # fmt: skip
    monkeypatch.setattr(plan, "QUICK", small)
    for module in (run, growth):
        monkeypatch.setattr(module, "call", lambda task, request: worker.TASKS[task](request))
    monkeypatch.setattr(startup, "_seconds", lambda code: 0.1)


def test_bench_prints_json_and_saves_the_same(cli, tiny, tmp_path):
    answer = cli("bench", "--quick", "--threads", "1", "--json", "--out", "numbers")
    assert answer.status == 0, answer.err
    results = json.loads(answer.out)
    assert results == json.loads((tmp_path / "numbers" / "bench.json").read_text())
    assert (tmp_path / "numbers" / "bench.png").stat().st_size > 1000
    assert results["finished"] and results["threads"] == [1] and results["plan"]["name"] == "quick"
    assert results["phases"]["masked"]["threads"]["1"]["codes_to_product"] > 0
    assert all(line.startswith("kruskal: bench: ") for line in answer.err.splitlines())
    assert "growth" in answer.err


def test_bench_prints_tables(cli, tiny, tmp_path):
    answer = cli("bench", "--quick", "--threads", "1")
    assert answer.status == 0, answer.err
    assert "million pairs / s" in answer.out and "bench.json" in answer.out.splitlines()[-1]
    assert "\x1b" not in answer.out
    assert (tmp_path / "kruskal-bench" / "bench.json").exists()


def test_bench_measures_only_some_sections(cli, tiny, refused, tmp_path):
    answer = cli("bench", "--quick", "--threads", "1", "--sections", "phases,startup")
    assert answer.status == 0, answer.err
    results = json.loads((tmp_path / "kruskal-bench" / "bench.json").read_text())
    assert results["finished"] and {"phases", "startup"} <= set(results) and "growth" not in results
    assert "bench.png" not in answer.out and "import kruskal" in answer.out
    assert "holds results of phases" in refused("bench", "--quick", "--sections", "startup, ")
    assert "--sections takes names among startup, phases" in refused("bench", "--sections", "phases,speed")


@pytest.mark.parametrize("text", ["3", "null", "[]", "no json"])
def test_bench_leaves_files_of_others_alone(refused, tmp_path, text):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "bench.json").write_text(text)
    assert "bench.json that is not of this command" in refused("bench", "--quick", "--out", "mine")
    assert (tmp_path / "mine" / "bench.json").read_text() == text


def test_a_quick_run_has_the_peers_that_it_is_asked_for(cli, tiny, monkeypatch):
    from kruskal.experiments.speed import peers

    for name in ("dictionary_learning", "denoising", "decomposition"):
        monkeypatch.setattr(peers, name, lambda *arguments: {"skipped": "it was called."})
    answer = cli("bench", "--quick", "--threads", "1", "--sections", "peers", "--json")
    assert answer.status == 0, answer.err
    told = [one["skipped"] for one in json.loads(answer.out)["peers"].values()]
    assert len(told) == 4 and all("was called" in one or "is not installed" in one for one in told)


@pytest.mark.parametrize("text", ["0", "two", "1,1", "", "1,,2", "-1", "1.5"])
def test_bench_refuses_bad_threads(refused, text):
    assert "--threads takes different whole numbers" in refused("bench", f"--threads={text}")


def test_bench_refuses_more_threads_than_cores(refused):
    assert "more than the" in refused("bench", "--threads", "1,9999")
    assert parse_threads("2, 1", 2) == [1, 2]
    with pytest.raises(InputError, match="3 is more than the 2 cores"):
        parse_threads("1,3", 2)


def test_bench_refuses_a_bad_folder(refused, tmp_path):
    (tmp_path / "file").write_text("")
    assert "is a file" in refused("bench", "--out", "file")
    assert "does not exist" in refused("bench", "--out", "absent/numbers")
    assert "--frobnicate" in refused("bench", "--frobnicate")


def test_help_of_bench(cli):
    answer = cli("bench", "--help")
    assert answer.status == 0
    assert all(option in answer.out for option in ("--out", "--quick", "--threads", "--json"))
