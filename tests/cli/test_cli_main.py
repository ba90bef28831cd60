"""The program as a whole: help, version, and how it ends when something is wrong."""

import contextlib
import ctypes
import errno
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import kruskal
from kruskal.cli import info, main

COMMANDS = ("inpaint", "denoise", "resume", "corrupt", "info", "demo")


def test_version(cli):
    assert cli("--version") == (0, f"kruskal {kruskal.__version__}\n", "")


def test_the_package_is_a_program():
    run = subprocess.run([sys.executable, "-m", "kruskal", "--version"], capture_output=True, text=True)
    assert (run.returncode, run.stdout, run.stderr) == (0, f"kruskal {kruskal.__version__}\n", "")
    run = subprocess.run([sys.executable, "-m", "kruskal", "frobnicate"], capture_output=True, text=True)
    assert run.returncode == 2 and "frobnicate" in run.stderr and "Traceback" not in run.stderr


def test_only_what_is_public_is_listed():
    names = {name for name in dir(kruskal) if not name.startswith("_")}
    assert set(kruskal.__all__) - {"__version__"} <= names
    assert not {"Any", "import_module"} & names


def test_help_names_all_commands(cli):
    answer = cli("--help")
    assert answer.status == 0
    assert all(command in answer.out for command in COMMANDS)
    assert cli().out == answer.out
    assert cli("classify") == cli("classify", "--help")


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command(cli, command):
    answer = cli(command, "--help")
    assert answer.status == 0
    assert f"kruskal {command}" in answer.out


def test_help_says_how_psnr_is_computed(cli):
    words = " ".join(cli("inpaint", "--help").out.replace("│", " ").split())
    assert "unrounded mean, clipped to the range of CLEAN's type" in words


def test_help_tells_the_defaults_of_the_chain(cli):
    from kruskal.defaults import Look
    from kruskal.settings import resolve

    few, whole = resolve((32, 32), look=Look(0.2, 0.0)), resolve((32, 32))
    assert (few.sweeps, few.burn_in, whole.sweeps, whole.burn_in) == (48, 24, 100, 50)
    words = " ".join(cli("inpaint", "--help").out.replace("│", " ").split())
    assert "Number of Gibbs sweeps. [default: (48 to 300, by data and model)]" in words
    assert "half of --sweeps, or the paper's 40" in words


def test_help_imports_nothing_heavy():
    code = (
        "import sys, json; from kruskal.cli import main; status = main(['inpaint', '--help']);"
        "print(json.dumps([status, sorted({name.split('.')[0] for name in sys.modules})]))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    status, modules = json.loads(run.stdout.splitlines()[-1])
    assert status == 0
    assert not {"numpy", "scipy", "numba", "matplotlib", "skimage", "h5py", "zarr"} & set(modules)


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["frobnicate"], "frobnicate"),
        (["inpaint", "a.npy", "-o", "b.npy", "--frobnicate"], "--frobnicate"),
        (["inpaint"], "IN"),
        (["inpaint", "a.npy"], "--output"),
        (["inpaint", "a.npy", "-o", "b.npy", "--model", "pca"], "kfa"),
        (["inpaint", "a.npy", "-o", "b.npy", "--sweeps", "many"], "--sweeps"),
        (["inpaint", "a.npy", "-o", "b.npy", "extra"], "extra"),
    ],
)
def test_usage_errors_are_one_line(refused, words, part):
    assert part in refused(*words)


@pytest.mark.parametrize(
    ("error", "status", "part"),
    [
        (MemoryError(), 1, "memory"),
        (OSError(errno.ENOSPC, "No space left on device", "out.npy"), 1, "the disk is full (out.npy)."),
        (PermissionError(errno.EACCES, "Permission denied", "x"), 1, "permission denied (x)."),
        (KeyboardInterrupt(), 130, "interrupted."),
    ],
)
def test_machine_errors_are_one_line(refused, monkeypatch, error, status, part):
    def fail(*_):
        raise error

    monkeypatch.setattr(info, "describe", fail)
    assert part in refused("info", "x.npy", status=status)


def test_a_bug_is_not_hidden(monkeypatch):
    def fail(*_):
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(info, "describe", fail)
    with pytest.raises(ZeroDivisionError):
        main(["info", "x.npy"])


@pytest.fixture
def ctrl_c():
    """Ctrl-C as on a terminal: a shell that starts a program in the background makes it ignore that."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("name, status", [("SIGINT", 130), ("SIGTERM", 143)])
def test_an_interrupt_that_the_compiler_swallows(monkeypatch, capsys, ctrl_c, name, status):
    """The interrupt is lost in a callback, and the compilation fails with an error of its own."""
    import kruskal.cli.app
    from kruskal.cli.errors import terminable

    def interrupted_compilation(**options):
        with terminable():
            with contextlib.suppress(KeyboardInterrupt):
                signal.raise_signal(getattr(signal, name))
            raise RuntimeError("no compiled object yet")

    monkeypatch.setattr(kruskal.cli.app, "app", interrupted_compilation)
    assert main(["inpaint"]) == status
    assert capsys.readouterr().err == "kruskal: interrupted.\n"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_other_errors_are_not_taken_for_an_interrupt(monkeypatch):
    import kruskal.cli.app

    def broken(**options):
        raise RuntimeError("a mistake of ours")

    monkeypatch.setattr(kruskal.cli.app, "app", broken)
    with pytest.raises(RuntimeError, match="a mistake of ours"):
        main(["inpaint"])


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("name, status", [("SIGINT", 130), ("SIGTERM", 143)])
def test_an_interrupt_that_leaves_no_error_comes_again(monkeypatch, capsys, ctrl_c, name, status, times):
    """It is forgotten, once or again and again, and the compilation goes on as if nothing had happened."""
    import kruskal.cli.app
    from kruskal.cli.errors import terminable

    forgetful = ctypes.CFUNCTYPE(None, ctypes.c_double)

    def compilation(**options):
        with terminable():
            forgetful(lambda _: signal.raise_signal(getattr(signal, name)))(0.0)
            for _ in range(times - 1):
                forgetful(time.sleep)(0.3)
            time.sleep(20)
        return 0

    monkeypatch.setattr(kruskal.cli.app, "app", compilation)
    before = time.perf_counter()
    assert main(["inpaint"]) == status
    assert time.perf_counter() - before < 10
    assert capsys.readouterr().err == "kruskal: interrupted.\n"
    assert signal.getsignal(signal.SIGALRM) is signal.SIG_DFL
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_an_interrupt_that_comes_too_late_does_not_come_after_the_end(monkeypatch, ctrl_c):
    import kruskal.cli.app

    def done_soon(**options):
        ctypes.CFUNCTYPE(None)(lambda: signal.raise_signal(signal.SIGINT))()
        return 0

    monkeypatch.setattr(kruskal.cli.app, "app", done_soon)
    monkeypatch.setattr(kruskal.cli.errors, "_AGAIN_SECONDS", 5.0)
    assert main(["inpaint"]) == 0
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_an_interrupt_that_comes_again_does_not_disturb_a_checkpoint(monkeypatch, capsys, ctrl_c):
    import kruskal.cli.app
    from kruskal.engines.lock import undisturbed

    saved = []

    def app(**options):
        ctypes.CFUNCTYPE(None)(lambda: signal.raise_signal(signal.SIGINT))()
        with undisturbed(afterwards=True):
            time.sleep(0.3)
            saved.append(True)
        return 0

    monkeypatch.setattr(kruskal.cli.app, "app", app)
    assert main(["inpaint"]) == 130 and saved == [True]
    assert capsys.readouterr().err == "kruskal: interrupted.\n"


@pytest.mark.parametrize("encoding", ["cp1252", "utf-8"])
def test_names_that_the_console_cannot_show(tmp_path, encoding):
    for name in ("日.npy", "bad\udcff.npy"):
        with contextlib.suppress(OSError), (tmp_path / name).open("wb") as file:  # some disks want text
            np.save(file, np.eye(9))
    names = os.listdir(tmp_path)
    environment = os.environ | {"PYTHONIOENCODING": encoding, "PYTHONUTF8": "1"}
    for name in names:
        for words in (["info", name], ["info", f"no{name}"]):
            command = [sys.executable, "-m", "kruskal", *words]
            run = subprocess.run(command, capture_output=True, cwd=tmp_path, env=environment)
            shown = words[1].encode(encoding, "backslashreplace")
            assert shown in run.stdout + run.stderr and b"Traceback" not in run.stderr
    assert "日.npy" in names
