"""Messages of bad input: one short sentence, whatever was given."""

import inspect

import numpy as np
import pytest

import kruskal
from kruskal.errors import InputError, shown

NOT_CHECKED_ALONE = {"x", "observed", "dictionary", "adapt"}
ODD = np.arange(40.0).reshape(5, 8) + 0.5
OPTIONS = [name for name in inspect.signature(kruskal.inpaint).parameters if name not in NOT_CHECKED_ALONE]


def test_what_is_shown_fits_into_a_sentence():
    assert shown(ODD) == "an array of shape (5, 8)"
    assert shown("word") == "'word'" and shown(3) == "3"
    assert shown(np.float64(2.5)) == repr(np.float64(2.5))
    assert shown(["a" * 500]).endswith("..") and len(shown(["a" * 500])) < 100
    assert "\n" not in shown([np.zeros((3, 3))])


@pytest.mark.parametrize("name", OPTIONS)
def test_an_array_in_the_place_of_an_option(name):
    with pytest.raises((InputError, TypeError)) as caught:
        kruskal.inpaint(np.random.default_rng(0).random((12, 12)), **{name: ODD})
    words = str(caught.value)
    assert isinstance(caught.value, InputError), words
    assert "\n" not in words and len(words) < 300


def test_an_array_in_the_place_of_a_target():
    with pytest.raises(InputError, match="an array of shape"):
        kruskal.inpaint_large(np.zeros((20, 20)), ODD)


@pytest.mark.parametrize(
    "call",
    [
        lambda: kruskal.inpaint_large(np.zeros((20, 20)), "x.npy", mask_is=ODD),
        lambda: kruskal.inpaint_large(np.zeros((20, 20)), "x.npy", model=ODD),
        lambda: kruskal.inpaint_large(np.zeros((20, 20)), "x.npy", key=ODD),
        lambda: kruskal.learn([np.random.default_rng(0).random((12, 12))], model=ODD),
        lambda: kruskal.data.observed_entries(np.zeros(3), mask_is=ODD),
        lambda: kruskal.data.labelled_pictures("nowhere", colour=ODD),
        lambda: kruskal.data.labelled_pictures("nowhere", part=ODD),
    ],
)
def test_an_array_in_the_place_of_a_word(call):
    with pytest.raises(InputError, match="an array of shape"):
        call()
