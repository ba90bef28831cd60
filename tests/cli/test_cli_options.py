"""How the text of an option is understood."""

import pytest

from kruskal.cli import options
from kruskal.errors import InputError


@pytest.mark.parametrize(("text", "shape"), [("8", (8,)), ("8x8", (8, 8)), (" 5X50x4 ", (5, 50, 4))])
def test_shape(text, shape):
    assert options.parse_shape(text, "--patch") == shape


@pytest.mark.parametrize(
    "text", ["", "8x", "x8", "8y8", "8,8", "8.0x8", "-8x8", "8x0", "0", "8x-1", "8x²", "٣"]
)
def test_bad_shape_names_option_and_text(text):
    with pytest.raises(InputError, match=r"^--patch .*\.$") as caught:
        options.parse_shape(text, "--patch")
    assert repr(text) in str(caught.value)


def test_numbers_that_no_array_could_count():
    for parse, option in ((options.parse_shape, "--patch"), (options.parse_rank, "--rank")):
        with pytest.raises(InputError, match=rf"^{option} takes .*\.$") as caught:
            parse("1" * 5000, option)
        assert len(str(caught.value)) < 150


def test_stride_is_one_number_or_one_per_axis():
    assert options.parse_stride("2") == 2
    assert options.parse_stride("1x1x3") == (1, 1, 3)
    with pytest.raises(InputError, match="--stride"):
        options.parse_stride("0")


@pytest.mark.parametrize(
    ("text", "alpha"), [("sample", "sample"), ("MAP", "map"), ("2.5", 2.5), ("1e6", 1e6)]
)
def test_alpha(text, alpha):
    assert options.parse_alpha(text) == alpha


@pytest.mark.parametrize("text", ["", "fixed", "0", "-1", "nan", "inf"])
def test_bad_alpha(text):
    with pytest.raises(InputError, match="--alpha takes"):
        options.parse_alpha(text)


def test_rank():
    assert options.parse_rank("auto") == "auto"
    assert options.parse_rank("7") == 7
    for text in ("0", "-1", "2.5", "all"):
        with pytest.raises(InputError, match="--rank takes"):
            options.parse_rank(text)


def test_limits():
    assert options.at_least(None, 1, "--sweeps") is None
    assert options.at_least(1, 1, "--sweeps") == 1
    with pytest.raises(InputError, match=r"--sweeps must be at least 1, not 0\."):
        options.at_least(0, 1, "--sweeps")
    for bad in (-1.0, float("nan"), float("inf")):
        with pytest.raises(InputError, match="--checkpoint-seconds"):
            options.not_negative(bad, "--checkpoint-seconds")
