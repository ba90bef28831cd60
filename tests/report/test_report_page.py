"""The report page: well-formed, complete, and asking for nothing outside itself."""

import base64
import dataclasses
import re
from html.parser import HTMLParser

import pytest

from kruskal.errors import InputError
from kruskal.report import scores, write_report

EMPTY_TAGS = {"meta", "img", "br"}


class Reader(HTMLParser):
    """Collects text and attributes, and insists that every tag is closed in order."""

    def __init__(self):
        super().__init__()
        self.open, self.text, self.attributes = [], [], []

    def handle_starttag(self, tag, attributes):
        self.attributes += [(tag, name, value) for name, value in attributes]
        if tag not in EMPTY_TAGS:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def read(path):
    reader = Reader()
    reader.feed(path.read_text(encoding="utf-8"))
    reader.close()
    assert reader.open == []
    return reader


@pytest.fixture(scope="module")
def written(figures_of_order, tmp_path_factory):
    example, figures = figures_of_order(2)
    found = scores(example.result.mean, example.reference, example.observed)
    found |= {"coverage": 0.9312, "coverage_std": 0.8123}
    path = tmp_path_factory.mktemp("page") / "report.html"
    command = "kruskal inpaint 'a<b>.png' -o out.png"
    assert (
        write_report(path, example.result, found, figures, "Noise & <gaps>", command, seconds=12.34) == path
    )
    return path, found, figures, read(path)


def test_it_holds_the_figures_themselves(written):
    _, _, figures, reader = written
    sources = [value for tag, name, value in reader.attributes if (tag, name) == ("img", "src")]
    head = "data:image/png;base64,"
    assert all(source.startswith(head) for source in sources)
    assert [base64.b64decode(source[len(head) :]) for source in sources] == [p.read_bytes() for p in figures]
    alternatives = [value for tag, name, value in reader.attributes if (tag, name) == ("img", "alt")]
    assert alternatives == ["Restoration", "Uncertainty", "Dictionary", "Ranks", "Traces"]


def test_it_refers_to_nothing_outside(written):
    path, _, _, reader = written
    page = re.sub(r"data:image/png;base64,[A-Za-z0-9+/=]*", "", path.read_text(encoding="utf-8"))
    assert len(page) < 20_000
    assert not re.search(r"https?:|//|url\(|@import|<script|<link|<iframe", page)
    assert not [item for item in reader.attributes if item[1] in ("href", "srcset", "onload")]


def test_it_serves_light_and_dark(written):
    page = written[0].read_text(encoding="utf-8")
    assert "prefers-color-scheme: dark" in page and 'content="light dark"' in page


def test_it_tells_the_numbers(written):
    _, found, _, reader = written
    text = " ".join("".join(reader.text).split())
    assert "Noise & <gaps>" in text and "kruskal inpaint 'a<b>.png' -o out.png" in text
    for expected in (
        f"{found['psnr']:.2f}",
        f"{found['psnr_missing']:.2f}",
        f"{found['rrse_observed']:.4f}",
        f"{found['ssim']:.4f}",
        "93.1 %",
        "9 of 12",
        "12.3",
        "4 × 4",
        "burn in",
        "64.0, 7.5",
    ):
        assert expected in text, expected


def test_it_does_without_scores_figures_and_command(figures_of_order, tmp_path):
    example, _ = figures_of_order(2)
    path = write_report(tmp_path / "bare.html", example.result, None, [], "Bare")
    text = "".join(read(path).text)
    assert "Bare" in text and "Against the reference" not in text and "Command" not in text
    assert [entry.name for entry in tmp_path.iterdir()] == ["bare.html"]


def test_unknown_values_are_dashes(figures_of_order, tmp_path):
    example, _ = figures_of_order(2)
    found = {"psnr": None, "psnr_missing": float("inf"), "own": 0.5}
    reader = read(write_report(tmp_path / "dash.html", example.result, found, [], "Dashes"))
    lines = [line for line in "".join(reader.text).splitlines() if line.startswith(("PSNR, dB", "own"))]
    assert lines == ["PSNR, dB–", "PSNR, dB–––", "own0.5000––"]


def test_mistakes_are_named(figures_of_order, tmp_path):
    example, _ = figures_of_order(2)
    with pytest.raises(InputError, match="folder does not exist"):
        write_report(tmp_path / "no" / "r.html", example.result, None, [], "x")
    with pytest.raises(InputError, match=r"none\.png"):
        write_report(tmp_path / "r.html", example.result, None, [tmp_path / "none.png"], "x")
    assert list(tmp_path.iterdir()) == []


def test_both_coverages_say_what_they_count(written):
    path = written[0]
    page = path.read_text(encoding="utf-8")
    assert "<dt>Missing within mean ± 2·sqrt(std² + noise²)</dt><dd>93.1 %</dd>" in page
    assert "<dt>Missing within mean ± 2·std</dt><dd>81.2 %</dd>" in page
    assert "coverage" not in page


def test_names_that_are_no_text(figures_of_order, tmp_path):
    example, _ = figures_of_order(2)
    path = write_report(
        tmp_path / "r.html", example.result, None, [], "bad\udcff.npy", "kruskal bad\udcff.npy"
    )
    assert "<h1>bad\\udcff.npy</h1>" in path.read_text(encoding="utf-8")


def test_notes_are_there(figures_of_order, tmp_path):
    example, _ = figures_of_order(2)
    result = dataclasses.replace(example.result, notes=("all of <it> is a guess",))
    text = "".join(read(write_report(tmp_path / "notes.html", result, None, [], "Notes")).text)
    assert "All of <it> is a guess." in text
    bare = "".join(read(write_report(tmp_path / "none.html", example.result, None, [], "None")).text)
    assert "To know about this result" in text and "To know about this result" not in bare
