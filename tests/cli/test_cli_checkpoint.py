"""Checkpoints: interrupted, killed and resumed runs end in the bytes of an uninterrupted one."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from cli_tools import SMALL, CtrlC, listing

from kruskal.cli import run as run_module

OUTPUTS = ("out.npy", "std.npy", "all.npz")
ASKED = ("-o", "out.npy", "--std", "std.npy", "--save", "all.npz")
RUN = ("inpaint", "damaged.npz", *ASKED, *SMALL)


def contents(folder):
    return [(folder / name).read_bytes() for name in OUTPUTS]


@pytest.fixture
def expected(cli, damaged, tmp_path):
    """The outputs of a run that nobody interrupted; they are removed again."""
    assert cli(*RUN).status == 0
    found = contents(tmp_path)
    for name in OUTPUTS:
        (tmp_path / name).unlink()
    return found


@pytest.fixture
def interrupted(cli, expected, monkeypatch):
    """A run stopped by Ctrl-C after its third sweep, with its checkpoint in run/; returns the answer."""
    with monkeypatch.context() as patched:
        patched.setattr(run_module, "choose", lambda quiet: CtrlC(3))
        return cli(*RUN, "--checkpoint", "run")


def edit_job(folder, change):
    document = json.loads((folder / "job.json").read_text())
    change(document)
    (folder / "job.json").write_text(json.dumps(document))


def test_checkpointing_does_not_change_the_result(cli, expected, tmp_path):
    assert cli(*RUN, "--checkpoint", "run", "--checkpoint-seconds", "0").status == 0
    assert contents(tmp_path) == expected
    document = json.loads((tmp_path / "run" / "job.json").read_text())
    assert document["finished"] is True
    assert document["job"]["output"] == str(tmp_path / "out.npy")


def test_ctrl_c_says_how_to_go_on(interrupted, tmp_path):
    assert interrupted.status == 130
    assert interrupted.out == ""
    assert interrupted.err == "kruskal: interrupted; go on with 'kruskal resume run'.\n"
    assert not any((tmp_path / name).exists() for name in OUTPUTS)
    assert json.loads((tmp_path / "run" / "state.json").read_text())["done"] == 3


def test_ctrl_c_without_checkpoint_leaves_nothing(refused, damaged, monkeypatch):
    monkeypatch.setattr(run_module, "choose", lambda quiet: CtrlC(3))
    assert refused(*RUN, status=130) == "interrupted."


def test_sigterm_is_a_ctrl_c_with_its_own_status(cli, expected, tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(run_module, "choose", lambda quiet: CtrlC(2, signal.SIGTERM))
        answer = cli(*RUN, "--checkpoint", "run")
        assert answer == (143, "", "kruskal: interrupted; go on with 'kruskal resume run'.\n")
        patched.setattr(run_module, "choose", lambda quiet: CtrlC(4, signal.SIGTERM))
        answer = cli("resume", "run")
        assert answer == (143, "", "kruskal: interrupted; go on with 'kruskal resume run'.\n")
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    assert json.loads((tmp_path / "run" / "state.json").read_text())["done"] == 4
    assert cli("resume", "run").status == 0
    assert contents(tmp_path) == expected


def test_sigterm_while_reading(refused, damaged, monkeypatch):
    monkeypatch.setattr(run_module, "read_inputs", lambda job: signal.raise_signal(signal.SIGTERM))
    assert refused(*RUN, status=143) == "interrupted."


def test_a_sigterm_handler_of_the_caller_stays(cli, damaged, monkeypatch):
    heard = []
    old = signal.signal(signal.SIGTERM, lambda *_: heard.append(True))
    try:
        monkeypatch.setattr(run_module, "choose", lambda quiet: CtrlC(2, signal.SIGTERM))
        assert cli(*RUN).status == 0
    finally:
        signal.signal(signal.SIGTERM, old)
    assert heard == [True]


def test_resume_from_another_folder(cli, interrupted, expected, tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    answer = cli("resume", tmp_path / "run", "--json", "--threads", "2")
    assert answer.status == 0, answer.err
    assert contents(tmp_path) == expected
    assert json.loads(answer.out)["threads"] == 2
    assert "going on after sweep 3/5" in answer.err and "sweep 4/5" in answer.err
    assert "sweep 3/5," not in answer.err


def test_a_moved_checkpoint_can_be_resumed(cli, interrupted, expected, tmp_path):
    shutil.move(tmp_path / "run", tmp_path / "moved")
    assert cli("resume", "moved", "--quiet").status == 0
    assert contents(tmp_path) == expected
    assert not (tmp_path / "run").exists()


def test_resume_of_a_finished_run_writes_the_same_again(cli, expected, tmp_path):
    assert cli(*RUN, "--checkpoint", "run").status == 0
    (tmp_path / "out.npy").unlink()
    assert cli("resume", "run").status == 0
    assert contents(tmp_path) == expected


def test_killed_before_the_first_checkpoint(cli, interrupted, expected, tmp_path):
    for path in (tmp_path / "run").iterdir():
        if path.name != "job.json":
            path.unlink()
    assert cli("resume", "run").status == 0
    assert contents(tmp_path) == expected


def test_an_unfinished_run_is_not_overwritten(refused, interrupted, tmp_path):
    before = (tmp_path / "run" / "state.json").read_bytes()
    assert "unfinished run: go on with 'kruskal resume run'" in refused(*RUN, "--checkpoint", "run")
    assert (tmp_path / "run" / "state.json").read_bytes() == before


def test_the_folder_of_a_finished_run_can_be_used_again(cli, expected, tmp_path):
    assert cli(*RUN, "--seed", "5", "--checkpoint", "run").status == 0
    assert contents(tmp_path) != expected
    assert cli(*RUN, "--checkpoint", "run").status == 0
    assert contents(tmp_path) == expected


def test_a_disk_that_is_full_at_the_end_says_how_to_go_on(cli, expected, tmp_path, monkeypatch):
    from kruskal.errors import InputError

    def full(*_):
        raise InputError("cannot write 'out.npy': No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(run_module, "write_outputs", full)
        answer = cli(*RUN, "--quiet", "--checkpoint", "run")
    assert answer.status == 2
    assert answer.err.endswith("No space left on device; go on with 'kruskal resume run'.\n")
    assert cli("resume", "run").status == 0
    assert contents(tmp_path) == expected


def test_a_checkpoint_disk_that_is_full_at_the_very_end_costs_no_output(cli, expected, tmp_path, monkeypatch):
    store = run_module.job_file.store

    def full(job, digest, finished=False):
        if finished:
            raise OSError(28, "No space left on device")
        store(job, digest)

    with monkeypatch.context() as patched:
        patched.setattr(run_module.job_file, "store", full)
        answer = cli(*RUN, "--quiet", "--checkpoint", "run")
    assert answer.status == 1
    assert "out.npy" in answer.err and answer.err.endswith(
        "written, but the checkpoint could not be marked as finished: No space left on device.\n"
    )
    assert contents(tmp_path) == expected


class TestWhatCannotBeResumed:
    """Each gets one sentence and changes nothing."""

    def test_no_folder(self, refused):
        assert refused("resume", "absent") == "there is no checkpoint folder absent."

    def test_another_folder(self, refused, tmp_path):
        (tmp_path / "run").mkdir()
        assert "is not a checkpoint" in refused("resume", "run")

    def test_run_of_the_library(self, refused, damaged, tmp_path):
        from kruskal import inpaint

        inpaint(damaged.values, patch_shape=(4, 4), n_atoms=4, sweeps=2, checkpoint=tmp_path / "run")
        sentence = refused("resume", "run")
        assert "started from Python; go on there with kruskal.resume('run')." in sentence

    @pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"job": 3, "digest": "", "finished": false}'])
    def test_damaged_job(self, refused, interrupted, tmp_path, text):
        (tmp_path / "run" / "job.json").write_text(text)
        assert "job.json is damaged" in refused("resume", "run")

    def test_job_without_an_entry(self, refused, interrupted, tmp_path):
        edit_job(tmp_path / "run", lambda document: document["job"].pop("settings"))
        assert "job.json is damaged" in refused("resume", "run")

    def test_damaged_state(self, refused, interrupted, tmp_path):
        (tmp_path / "run" / "state.json").write_text("{")
        sentence = refused("resume", "run")
        assert "run cannot be read" in sentence and "go on" not in sentence

    def test_output_folder_gone(self, refused, interrupted, tmp_path):
        gone = str(tmp_path / "gone" / "out.npy")
        edit_job(tmp_path / "run", lambda document: document["job"].update(output=gone))
        assert "does not exist" in refused("resume", "run")

    def test_input_gone(self, refused, interrupted, tmp_path):
        (tmp_path / "damaged.npz").unlink()
        assert "damaged.npz': no such file" in refused("resume", "run")

    def test_input_changed(self, refused, interrupted, damaged, tmp_path):
        np.savez(tmp_path / "damaged.npz", values=damaged.values + 1, observed=damaged.observed)
        assert "changed since the run" in refused("resume", "run")

    def test_bad_number_of_threads(self, refused, interrupted):
        assert "--threads" in refused("resume", "run", "--threads", "0")


KILLS = int(os.environ.get("KRUSKAL_KILLS", "2"))
"""How often a run is killed at a random sweep; KRUSKAL_KILLS=20 for the record in docs/results.md."""


@pytest.mark.parametrize(
    "blow, seed",
    [(signal.SIGINT, 0), (signal.SIGTERM, 0), *((signal.SIGKILL, seed) for seed in range(KILLS))],
)
def test_a_real_process_is_stopped_and_resumed(cli, damaged, tmp_path, blow, seed):
    """A long run in a process of its own is hit at a random sweep; a resumed one ends in the same bytes."""
    long_run = [*RUN, "--sweeps", "400"]
    target = int(
        np.random.default_rng(seed).integers(1, 100)
    )  # far from the end, as a busy machine may see it late
    assert cli(*long_run, "--quiet").status == 0
    expected = contents(tmp_path)
    for name in OUTPUTS:
        (tmp_path / name).unlink()
    program = (  # a parent in the background may have told us to ignore Ctrl-C
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from kruskal.cli import main; sys.exit(main())"
    )
    command = [sys.executable, "-c", program, *long_run, "--checkpoint", "run", "--checkpoint-seconds", "0"]
    process = subprocess.Popen(
        command, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 120
    header = tmp_path / "run" / "state.json"
    while time.monotonic() < deadline and not (
        header.exists() and json.loads(header.read_text())["done"] >= target
    ):
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.002)
    os.kill(process.pid, blow)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == {signal.SIGINT: 130, signal.SIGTERM: 143}.get(blow, -blow)
    if blow != signal.SIGKILL:
        assert errors.endswith("kruskal: interrupted; go on with 'kruskal resume run'.\n")
        assert "Traceback" not in errors
        assert not [name for name in listing(tmp_path) if ".kruskal-" in name]
    assert not any((tmp_path / name).exists() for name in OUTPUTS)
    assert cli("resume", "run", "--quiet").status == 0
    assert contents(tmp_path) == expected


def test_a_finished_run_beside_files_of_others_stays(cli, refused, expected, tmp_path):
    assert cli(*RUN, "--checkpoint", "run").status == 0
    (tmp_path / "run" / "notes.txt").write_text("mine")
    sentence = refused(*RUN, "--checkpoint", "run")
    assert sentence == "--checkpoint run holds other files, such as notes.txt; give a new or an empty folder."


@pytest.mark.parametrize("left", [[".kruskal-77-abcd.npz"], ["input.npz"], []])
def test_what_a_killed_process_left_is_no_run(cli, expected, tmp_path, left):
    """A folder without a job and without a state can be used."""
    (tmp_path / "run").mkdir()
    for name in left:
        (tmp_path / "run" / name).write_text("a part")
    assert cli(*RUN, "--checkpoint", "run").status == 0
    assert contents(tmp_path) == expected


def test_a_run_holds_its_folder_from_the_beginning(cli, expected, tmp_path, monkeypatch):
    """Pilot runs may take minutes before the first checkpoint: nobody else may begin there meanwhile."""
    answers = []

    def meanwhile(job, inputs, progress):
        process = [sys.executable, "-m", "kruskal"]
        for words in (["resume", "run"], [*RUN, "--checkpoint", "run"]):
            done = subprocess.run([*process, *words], capture_output=True, text=True, check=False)
            answers.append((done.returncode, done.stderr))
        return restore(job, inputs, progress)

    restore = run_module._restore
    monkeypatch.setattr(run_module, "_restore", meanwhile)
    assert cli(*RUN, "--checkpoint", "run").status == 0
    assert [status for status, _ in answers] == [2, 2]
    assert all("run is in use by another process" in told for _, told in answers), answers
    assert contents(tmp_path) == expected
    assert not (tmp_path / "run" / "lock").exists()


@pytest.mark.parametrize("stream", ["2>/dev/full", "2>&-", "2>&1 >/dev/null | head -c 1"])
def test_nobody_who_listens(damaged, expected, tmp_path, stream):
    """A standard error that cannot be written to does not cost the run."""
    if not os.path.exists("/dev/full"):
        pytest.skip("there is no /dev/full")
    words = " ".join([sys.executable, "-m", "kruskal", *RUN])
    subprocess.run(["sh", "-c", f"{words} {stream}"], cwd=tmp_path, check=False, capture_output=True)
    assert contents(tmp_path) == expected
