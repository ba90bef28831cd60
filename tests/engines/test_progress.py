"""Progress: what is told, when, and to whom."""

import io
import sys

import pytest
from rich.console import Console

from kruskal.engines import progress

VALUES = {"noise_std": 24.81, "active_per_item": 5.27, "atoms_used": 187}


class Clock:
    """A clock that moves only when told to."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self):
        return True


def run_log_lines(seconds_per_sweep, total=10, done=0, interval=5.0):
    stream, clock = io.StringIO(), Clock()
    log = progress.LogLines(stream, interval=interval, clock=clock)
    log.start(total, done)
    for sweep in range(done + 1, total + 1):
        clock.now += seconds_per_sweep
        log.update(sweep, VALUES)
    log.stop()
    return stream.getvalue().splitlines()


def test_log_lines_first_last_and_every_few_seconds():
    lines = run_log_lines(seconds_per_sweep=2.0)
    assert [line.split(",")[0] for line in lines] == [
        "kruskal: sweep 1/10",
        "kruskal: sweep 4/10",
        "kruskal: sweep 7/10",
        "kruskal: sweep 10/10",
    ]


def test_fast_run_has_only_first_and_last_line():
    lines = run_log_lines(seconds_per_sweep=0.01, total=100)
    assert len(lines) == 2
    assert lines[0].startswith("kruskal: sweep 1/100")
    assert lines[1].startswith("kruskal: sweep 100/100")


def test_line_tells_everything():
    lines = run_log_lines(seconds_per_sweep=10.0)
    assert lines[3] == "kruskal: sweep 4/10, noise 24.8, 5.3 atoms per item, 187 atoms used, 1 min left"
    assert "left" not in lines[0] and "left" not in lines[-1]


def test_resumed_run_counts_from_where_it_was():
    lines = run_log_lines(seconds_per_sweep=10.0, total=10, done=7)
    assert lines[0] == "kruskal: going on after sweep 7/10"
    assert lines[1].startswith("kruskal: sweep 8/10")
    assert lines[2].endswith("10 s left")


def test_pace_leaves_out_the_first_sweep():
    clock = Clock()
    pace = progress.Pace(11, clock)
    clock.now += 300.0  # compilation
    assert pace.seconds_left(1) is None
    clock.now += 2.0
    assert pace.seconds_left(2) == pytest.approx(18.0)


def test_pace_follows_the_last_sweeps():
    clock = Clock()
    pace = progress.Pace(200, clock)
    for sweep in range(1, 101):
        clock.now += 1.0 if sweep <= 80 else 5.0
        left = pace.seconds_left(sweep)
        if sweep == 80:
            assert left == pytest.approx(120.0)
    assert left == pytest.approx(500.0)  # the mean of all sweeps would say 181


def test_note_before_start_goes_to_standard_error(capsys):
    progress.LogLines().note("compiling the kernels")
    captured = capsys.readouterr()
    assert captured.err == "kruskal: compiling the kernels\n"
    assert captured.out == ""


def test_update_outside_a_run_is_ignored(capsys):
    log = progress.LogLines()
    log.update(1, VALUES)
    log.start(3)
    log.stop()
    log.stop()
    log.update(2, VALUES)
    assert capsys.readouterr().err == ""


def test_bar_shows_sweep_noise_and_atoms():
    stream = io.StringIO()
    bar = progress.Bar(Console(file=stream, force_terminal=True, width=80))
    bar.note("compiling [the] kernels")
    bar.start(20)
    bar.update(1, VALUES)
    bar.update(12, VALUES)
    bar.stop()
    bar.stop()
    bar.update(13, VALUES)
    text = stream.getvalue()
    assert "compiling [the] kernels" in text
    assert "12/20" in text and "13/20" not in text
    assert "noise 24.8, 5.3 atoms per item" in text
    assert "s left" in text


def test_choice(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert isinstance(progress.choose(), progress.Bar)
    assert isinstance(progress.choose(quiet=True), progress.Silent)
    monkeypatch.setenv("TERM", "dumb")
    assert isinstance(progress.choose(), progress.LogLines)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert isinstance(progress.choose(), progress.LogLines)


def test_silent_says_nothing(capsys):
    silent = progress.Silent()
    silent.start(3)
    silent.note("x")
    silent.update(1, VALUES)
    silent.stop()
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err == ""


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "0 s"), (59.4, "59 s"), (59.7, "1 min"), (250, "4 min 10 s"), (3600, "1 h"), (7500, "2 h 5 min")],
)
def test_duration(seconds, words):
    assert progress.duration(seconds) == words


class Full(io.StringIO):
    """A stream on a full disk."""

    def write(self, text):
        raise OSError(28, "No space left on device")


def test_a_stream_that_cannot_be_written_costs_nothing(monkeypatch, capsys):
    closed = io.StringIO()
    closed.close()
    for stream in (Full(), closed):
        log = progress.LogLines(stream)
        log.start(2)
        log.note("something")
        log.update(2, VALUES)
        log.stop()
    monkeypatch.setattr(progress.sys, "stderr", None)
    assert isinstance(progress.choose(), progress.Silent)
    progress.LogLines().note("nobody hears it")
    assert capsys.readouterr().out == ""
