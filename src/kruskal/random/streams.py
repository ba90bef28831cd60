"""Names for the independent streams of one seed, and NumPy generators for the small global draws."""

from enum import IntEnum
from typing import Any

import numpy as np
from numpy.random.bit_generator import ISeedSequence


class Stream(IntEnum):
    """What a stream of random numbers is for. A number once given is never reused for something else."""

    CODES = 1
    SLABS = 2
    USAGE = 3
    CODE_PRECISION = 4
    NOISE_PRECISION = 5
    ATOMS = 6
    ATOM_WEIGHTS = 7
    SHRINKAGE = 8
    CONCENTRATION = 9
    MOVES = 10
    START = 11
    REFINED = 12
    PRIOR_SLABS = 13
    JOINT_SLABS = 14
    LIKENESS = 15
    REGROUPED_USAGE = 16
    TERM_ROWS = 20
    TERM_WEIGHTS = 21
    TERM_PRECISION = 22
    TERM_SCALES = 23
    CODING = 40
    CODING_SLABS = 41
    SVM_SCALES = 70
    SVM_WEIGHTS = 71
    SVM_PRECISION = 72
    SVM_ORDER = 73
    SVM_FOLDS = 74
    MAP_CODES = 50
    MAP_CELLS = 51
    MAP_SLABS = 52
    MAP_START = 53
    MAP_READING = 54
    BATCHES = 30
    BATCH_ORDER = 31
    DEEP_START = 90
    DEEP_ORDER = 91
    DEEP_CELLS = 92
    DEEP_DROPOUT = 93
    DEEP_TEST_CELLS = 94
    DEEP_SAMPLES = 95
    DEEP_UNPOOLING = 96
    DEEP_SCALES = 97
    DEEP_PRETRAINING = 98
    DEEP_IMAGES = 110
    DEEP_SPLIT = 111
    DEEP_LAYERS = 112
    BLOCK_ORDER = 120
    BLOCK_ITEMS = 121
    BLOCK_SAMPLE = 122


def key_of(seed: int) -> tuple[np.uint64, np.uint64]:
    """The two key words that the Philox kernels take for ``seed``."""
    return np.uint64(seed & 0xFFFFFFFF), np.uint64(seed >> 32)


def generator(seed: int, stream: Stream, sweep: int) -> np.random.Generator:
    """A NumPy generator that is a pure function of its arguments (Philox4x64, low words running)."""
    key: Any = _Key(np.array([seed, int(stream)], dtype=np.uint64))
    counter = np.array([0, 0, 0, sweep], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key, counter=counter))


class _Key(ISeedSequence):
    """A key for Philox as it is: with its own argument for one, NumPy first asks the system for entropy."""

    def __init__(self, words: np.ndarray) -> None:
        self._words = words

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> np.ndarray:
        """The two words of the key, which is all that Philox asks for."""
        return self._words
