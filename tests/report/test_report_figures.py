"""The figures: there, of sane size, the same bytes every time, and showing what they should."""

import errno
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib.text import Text
from PIL import Image
from report_example import EXAMPLES, make_example

from kruskal.errors import InputError
from kruskal.report import coverage, write_figures
from kruskal.report.calibration import standard_errors
from kruskal.report.canvas import HEADING, MARGIN, drawing_style
from kruskal.report.charts import draw_ranks, draw_traces
from kruskal.report.curves import draw_curve_uncertainty
from kruskal.report.dictionary import draw_dictionary
from kruskal.report.pictures import describe_quality, draw_uncertainty
from kruskal.report.tiles import TILE_GAP

ALL = ["restoration.png", "uncertainty.png", "dictionary.png", "ranks.png", "traces.png"]


def pixels(path):
    """Return a PNG as an array (height, width, 3) of bytes."""
    with Image.open(path) as picture:
        assert picture.format == "PNG"
        return np.asarray(picture.convert("RGB"))


@pytest.mark.parametrize("order", EXAMPLES)
def test_figures_of_every_order(order, figures_of_order):
    _, paths = figures_of_order(order)
    assert [path.name for path in paths] == ALL
    for path in paths:
        picture = pixels(path)
        assert 200 < picture.shape[0] < 2500 and 600 < picture.shape[1] < 2500
        below_heading = picture[HEADING + 20 :]
        assert below_heading.min() < 128 < below_heading.max()
        assert path.stat().st_size < 2_000_000
    assert sorted(path.name for path in paths[0].parent.iterdir()) == sorted(ALL)


@pytest.mark.parametrize("order", [1, 3])
def test_figures_without_a_reference_and_without_traces(order, tmp_path):
    example = make_example(*EXAMPLES[order])
    example.result.trace = {}
    paths = write_figures(
        tmp_path, example.result, observed_values=example.observed_values, observed=example.observed
    )
    assert [path.name for path in paths] == ALL[:-1]


def test_bytes_do_not_depend_on_anything_else(figures_of_order, tmp_path):
    """Neither missing values nor the user's own matplotlib settings have an influence."""
    import matplotlib

    example, paths = figures_of_order(2)
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "red", "image.cmap": "jet"}):
        again = write_figures(
            tmp_path / "again",
            example.result,
            observed_values=np.where(example.observed, example.observed_values, 1e30),
            observed=example.observed,
            reference=example.reference,
        )
    for old, new in zip(paths, again, strict=True):
        assert old.read_bytes() == new.read_bytes(), old.name
        assert b"matplotlib" not in new.read_bytes()


def test_missing_entries_are_marked_and_the_others_shown(figures_of_order):
    example, paths = figures_of_order(2)
    scale = 512 // 16
    corner = HEADING + 30 + scale // 2, MARGIN + scale // 2
    centres = pixels(paths[0])[corner[0] :: scale, corner[1] :: scale][:16, :16].astype(int)
    grey = (centres[..., 0] == centres[..., 1]) & (centres[..., 1] == centres[..., 2])
    assert np.array_equal(grey, example.observed)
    brightness = centres[..., 0][example.observed]
    order = np.argsort(example.observed_values[example.observed])
    assert (np.diff(brightness[order]) >= 0).all() and brightness.min() < 40 and brightness.max() > 215


def test_missing_colours_are_black_and_missing_pixels_blue(tmp_path):
    example = make_example((16, 16, 3), (4, 4, 3))
    observed = np.repeat(example.observed[..., :1], 3, axis=2)
    folders = {}
    for name, mask in (("pixels", observed), ("colours", example.observed)):
        options = {"observed_values": np.full((16, 16, 3), 110.0), "observed": mask}
        path, *_ = write_figures(tmp_path / name, example.result, **options)
        folders[name] = pixels(path)[HEADING + 46 :: 32, MARGIN + 16 :: 32][:16, :16].astype(int)
    blue = folders["pixels"][..., 2] > folders["pixels"][..., 0]
    assert np.array_equal(blue, ~observed[..., 0])
    assert np.array_equal(folders["colours"] == 0, ~example.observed)


def test_the_first_tile_is_the_most_used_atom(tmp_path):
    example = make_example((16, 16), (4, 4))
    atom = np.linspace(-1, 1, 16).reshape(4, 4)
    example.result.dictionary[np.argmax(example.result.usage)] = -3 * atom
    paths = write_figures(
        tmp_path, example.result, observed_values=example.observed_values, observed=example.observed
    )
    picture = pixels(paths[2])[HEADING + TILE_GAP :, MARGIN + TILE_GAP :, 0]
    scale = 112 // 4
    shown = picture[scale // 2 :: scale, scale // 2 :: scale][:4, :4] / 255
    expected = 0.5 - 0.5 * atom
    assert np.allclose(shown, expected, atol=0.01)


def test_the_heading_counts_the_atoms():
    example = make_example((16, 16), (4, 4), n_atoms=12)
    figure = draw_dictionary(example.result)
    assert [text.get_text() for text in figure.texts] == [
        "Dictionary: 9 of 12 atoms in use",
        "Most used first; 3 unused left out",
    ]
    example.result.usage[:] = 0
    assert "None of the 12 atoms" in draw_dictionary(example.result).texts[1].get_text()
    assert "No atom" in draw_ranks(example.result).texts[1].get_text()


def is_grey(figure):
    """Tell whether every tile of a mosaic is grey; the background is not."""
    picture = figure.axes[0].images[0].get_array()
    tiles = picture[(picture != picture[0, 0]).any(axis=2)]
    return bool((tiles == tiles[:, :1]).all())


def test_a_last_axis_of_three_is_colour_only_if_the_data_have_it_too():
    in_colour = make_example((9, 9, 3), (4, 4, 3)).result
    volume = make_example((9, 9, 9), (4, 4, 3)).result
    assert not is_grey(draw_dictionary(in_colour))
    assert is_grey(draw_dictionary(volume))


def test_a_constant_atom_is_seen():
    result = make_example((9, 9), (4, 4)).result
    result.dictionary[:] = 1
    picture = draw_dictionary(result).axes[0].images[0].get_array()
    white = (picture == 1).all(axis=2)
    assert white.any() and not white[[0, -1]].any() and not white[:, [0, -1]].any()


def test_long_dictionaries_are_cut_and_say_so():
    for patch_shape in ((8,), (4, 4)):
        result = make_example((64,) * len(patch_shape), patch_shape, n_atoms=600).result
        figure = draw_dictionary(result)
        assert figure.texts[1].get_text().startswith("The ")
        assert max(figure.get_size_inches()) * figure.dpi < 2000


def test_rank_histogram_counts_used_atoms_only():
    result = make_example((16, 16), (4, 4), n_atoms=6).result
    result.ranks = np.array([1, 3, 3, 2, 3, 9])
    result.usage = np.array([0.5, 0.2, 0.1, 0.3, 0.0, 0.0])
    bars = draw_ranks(result).axes[0].patches
    assert {round(bar.get_x() + bar.get_width() / 2): bar.get_height() for bar in bars} == {
        0: 0,
        1: 1,
        2: 1,
        3: 2,
    }


def test_undefined_ranks_are_left_out():
    result = make_example((16, 16), (4, 4), n_atoms=4).result
    result.usage = np.array([0.5, 0.2, 0.1, 0.3])
    result.ranks = np.array([-1, 2, 2, 0])
    bars = draw_ranks(result).axes[0].patches
    assert [bar.get_height() for bar in bars] == [1, 0, 2]
    result.ranks = np.full(4, -1)
    assert "not defined" in draw_ranks(result).texts[1].get_text()


def test_the_quality_is_that_of_the_clipped_restoration():
    reference = np.array([[0, 255], [0, 255]], np.uint8)
    mean = np.array([[-50.0, 300.0], [0.0, 245.0]])
    expected = 20 * np.log10(255 / 5)
    assert describe_quality(mean, reference) == f"; restored with {expected:.2f} dB"
    assert describe_quality(mean, np.full((2, 2), np.nan)) == ""


def test_traces_have_their_burn_in_and_scale():
    result = make_example((16, 16), (4, 4)).result
    result.trace["surprise"] = np.full(10, np.nan)
    result.trace["own_measure"] = np.arange(10.0)
    with drawing_style():
        figure = draw_traces(result)
    noise, used, alpha, own = figure.axes
    assert [axes.get_title("left") for axes in figure.axes] == [
        "Noise standard deviation",
        "Atoms in use",
        "Shrinkage α",
        "Own measure",
    ]
    assert alpha.get_yscale() == "log" and noise.get_yscale() == used.get_yscale() == "linear"
    assert noise.lines[0].get_xdata().tolist() == list(range(1, 11))
    shaded = own.patches[0]
    assert (shaded.get_x(), shaded.get_x() + shaded.get_width()) == (0.5, 4.5)


def test_standard_errors_are_those_of_the_missing_entries():
    example = make_example((6, 7), (2, 2))
    result, missing = example.result, ~example.observed
    expected = [
        (example.reference[place] - result.mean[place]) / (result.std[place] ** 2 + 4) ** 0.5
        for place in zip(*np.nonzero(missing))
    ]
    assert np.allclose(standard_errors(result, example.observed, example.reference), expected)
    assert standard_errors(result, np.ones((6, 7), dtype=bool), example.reference).size == 42


def test_error_and_spread_share_their_scale():
    example = make_example((16, 16), (4, 4))
    example.result.mean = example.reference + 50
    figure = draw_uncertainty(example.result, example.observed_values, example.observed, example.reference)
    std, error = (axes.images[0] for axes in figure.axes[:2])
    assert std.get_clim() == error.get_clim() == (0, pytest.approx(50))


@pytest.mark.parametrize("shape", [(1, 30), (9, 8, 1), (2, 2), (1,)])
def test_odd_shapes_and_empty_spread(shape, tmp_path):
    """Constant data, no noise, no spread, an unknown truth and axes of length 1 still make figures."""
    example = make_example(shape, tuple(min(length, 2) for length in shape))
    result = example.result
    result.mean, result.std, result.noise_std = np.full(shape, 3.0), np.zeros(shape), 0.0
    result.trace = {}
    for name, reference in (("constant", np.full(shape, 3, np.uint8)), ("unknown", np.full(shape, np.nan))):
        paths = write_figures(
            tmp_path / name,
            result,
            observed_values=np.full(shape, 3, np.uint8),
            observed=np.ones(shape, dtype=bool),
            reference=reference,
        )
        assert len(paths) == 4


def test_the_folder(tmp_path):
    example = make_example((4, 4), (2, 2))
    options = {"observed_values": example.observed_values, "observed": example.observed}
    with pytest.raises(InputError, match="parent"):
        write_figures(tmp_path / "a" / "b", example.result, **options)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="file"):
        write_figures(tmp_path / "file", example.result, **options)
    with pytest.raises(InputError, match="reference"):
        write_figures(tmp_path / "c", example.result, **options, reference=np.zeros((4, 5)))
    assert not (tmp_path / "c").exists()


def test_heavy_libraries_are_imported_late():
    code = "import sys, kruskal.report; print({'matplotlib', 'skimage'} & set(sys.modules))"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "set()"


@pytest.mark.parametrize("order", [1, 2])
def test_the_calibration_says_what_it_counts_and_fits(order):
    """The title names the band of `coverage` and ends within the figure."""
    example = make_example(*EXAMPLES[order])
    draw = draw_curve_uncertainty if order == 1 else draw_uncertainty
    with drawing_style():
        figure = draw(example.result, example.observed_values, example.observed, example.reference)
        figure.draw_without_rendering()
    (title,) = [text for text in figure.findobj(Text) if "within" in text.get_text()]
    share = coverage(
        example.result.mean,
        example.result.std,
        example.result.noise_std,
        example.reference,
        ~example.observed,
    )
    assert title.get_text() == f"{100 * share:.1f} % within mean ± 2·sqrt(std² + noise²)"
    assert title.get_window_extent().x1 < figure.bbox.width


def test_a_new_folder_is_complete_or_not_there(tmp_path, monkeypatch):
    """A disk that is full, and a drawing that fails, leave no folder behind."""
    example = make_example(*EXAMPLES[2])
    arguments = {"observed_values": example.observed_values, "observed": example.observed}

    def full(path, content):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_bytes", full)
        with pytest.raises(InputError, match=r"cannot write .*new.*: No space left on device"):
            write_figures(tmp_path / "new", example.result, **arguments)

    def fail(result):
        raise MemoryError

    monkeypatch.setattr("kruskal.report.figures.draw_traces", fail)
    with pytest.raises(MemoryError):
        write_figures(tmp_path / "new", example.result, **arguments)
    assert not any(tmp_path.iterdir())
