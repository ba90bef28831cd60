"""Philox4x32-10: known answers, an independent implementation, and the variates made from its words."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtri

from kruskal.errors import check_seed
from kruskal.random import Stream, generator, key_of
from kruskal.random.normal import fill_logs, fill_normals, normal, normal_quantile
from kruskal.random.philox import fill_few_words, fill_words, philox, uniform_32, uniform_52

SURE = 1e-4

KNOWN = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


def slow_philox(counter, key):
    """The published algorithm with Python's integers."""
    c, k = list(counter), list(key)
    for _ in range(10):
        first, second = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [
            (second >> 32) ^ c[1] ^ k[0],
            second & 0xFFFFFFFF,
            (first >> 32) ^ c[3] ^ k[1],
            first & 0xFFFFFFFF,
        ]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return tuple(c)


@pytest.mark.parametrize("counter, key, words", KNOWN)
def test_known_answers(counter, key, words):
    assert tuple(int(word) for word in philox(*counter, *key)) == words


def test_against_the_slow_implementation():
    random = np.random.default_rng(0)
    for _ in range(200):
        *counter, first, second = (int(word) for word in random.integers(0, 2**32, 6))
        assert tuple(map(int, philox(*counter, first, second))) == slow_philox(counter, (first, second))


def words(n: int, item=3, sweep=7, stream=Stream.CODES, seed=5) -> np.ndarray:
    """(n, 4) words of consecutive counters."""
    key = key_of(seed)
    return np.array([philox(k, item, sweep, int(stream), *key) for k in range(n)], dtype=np.uint64)


def test_uniforms():
    drawn = words(5000)
    for column in range(4):
        assert stats.kstest([uniform_32(word) for word in drawn[:, column]], "uniform").pvalue > SURE
    assert stats.kstest([uniform_52(a, b) for a, b, _, _ in drawn], "uniform").pvalue > SURE


def test_uniforms_are_never_zero_or_one():
    largest, zero = np.uint64(0xFFFFFFFF), np.uint64(0)
    assert 0.0 < uniform_32(zero) < 1e-9
    assert 1.0 - 1e-9 < uniform_32(largest) < 1.0
    assert 0.0 < uniform_52(zero, zero) < 1e-15
    assert uniform_52(largest, zero) < 1.0


def test_uniform_52_of_all_ones_is_below_one():
    assert uniform_52(np.uint64(0xFFFFFFFF), np.uint64(0xFFFFFFFF)) < 1.0


def test_uniform_52_uses_both_words():
    high, low = np.uint64(0x12345678), np.uint64(0x9ABCDEF0)
    exact = ((0x12345678 << 20) + (0x9ABCDEF0 >> 12) + 0.5) / 2.0**52
    assert uniform_52(high, low) == pytest.approx(exact, rel=1e-15)


def test_normals():
    drawn = words(8000)
    first = np.array([normal(a, b) for a, b, _, _ in drawn])
    second = np.array([normal(c, d) for _, _, c, d in drawn])
    assert stats.kstest(first, "norm").pvalue > SURE
    assert stats.kstest(second, "norm").pvalue > SURE
    assert abs(np.corrcoef(first, second)[0, 1]) * np.sqrt(len(first)) < 4.0
    assert abs(np.corrcoef(np.abs(first), np.abs(second))[0, 1]) * np.sqrt(len(first)) < 4.0
    assert stats.kurtosistest(first).pvalue > SURE


def test_normal_quantile():
    """Against SciPy's, through the middle and far into both tails."""
    tails = np.logspace(-300, -1, 400)
    for u in np.concatenate([np.linspace(1e-3, 1 - 1e-3, 2001), tails, 1.0 - tails[tails > 1e-12]]):
        assert normal_quantile(u) == pytest.approx(ndtri(u), rel=1e-13, abs=1e-15)


def test_rows_of_words():
    """`fill_words` is philox in the order that it promises."""
    filled = np.zeros((3, 20), np.uint32)
    fill_words(filled, 11, 7, int(Stream.SLABS), *key_of(5))
    for m, j in np.ndindex(filled.shape):
        assert filled[m, j] == philox(j % 5, 11 + m, 7, int(Stream.SLABS), *key_of(5))[j // 5]


def test_rows_of_normals():
    filled = np.zeros((4, 64), np.uint32)
    fill_words(filled, 0, 1, int(Stream.SLABS), *key_of(9))
    uniforms, normals = np.zeros((4, 32)), np.zeros((4, 32))
    fill_normals(filled, uniforms, normals)
    for m, j in np.ndindex(normals.shape):
        high, low = np.uint64(filled[m, j]), np.uint64(filled[m, 32 + j])
        assert normals[m, j] == pytest.approx(normal(high, low), rel=1e-14)


def test_rows_of_normals_in_single_precision():
    filled = np.zeros((500, 64), np.uint32)
    fill_words(filled, 0, 1, int(Stream.SLABS), *key_of(9))
    uniforms, double, single = np.zeros((500, 32)), np.zeros((500, 32)), np.zeros((500, 32), np.float32)
    fill_normals(filled, uniforms, double)
    fill_normals(filled, uniforms, single)
    np.testing.assert_allclose(single, double, rtol=5e-7)


def test_rows_of_normals_far_out():
    """Words that are 0 or all ones: both tails, as far as 52 bits reach."""
    words = np.zeros((3, 8), np.uint32)
    words[1] = 0xFFFFFFFF
    words[2, :4] = 1 << np.arange(4)
    normals = np.zeros((3, 4))
    fill_normals(words, np.zeros((3, 4)), normals)
    for m, j in np.ndindex(normals.shape):
        u = uniform_52(np.uint64(words[m, j]), np.uint64(words[m, 4 + j]))
        assert normals[m, j] == pytest.approx(ndtri(u) if u < 0.5 else -ndtri(1.0 - u), rel=1e-13)


def test_logarithms_of_many_numbers():
    numbers = np.concatenate([np.logspace(-300, 300, 1001), 1.0 + np.linspace(-0.5, 0.5, 1001)])
    logs = np.empty_like(numbers)
    fill_logs(numbers, logs)
    np.testing.assert_allclose(logs, np.log(numbers), rtol=1e-15)


def test_few_words_of_many_items():
    """`fill_few_words` is philox in the order that it promises, page after page."""
    n, n_items = 4, 5
    for page in (0, 2):
        filled = np.zeros(4 * n * n_items, np.uint32)
        fill_few_words(filled, n, 11, 7, int(Stream.SLABS), *key_of(5), page)
        for q, m, c in np.ndindex(4, n_items, n):
            wanted = philox(page * n + c, 11 + m, 7, int(Stream.SLABS), *key_of(5))[q]
            assert filled[(q * n_items + m) * n + c] == wanted


@pytest.mark.parametrize(
    "other", [{"item": 4}, {"sweep": 8}, {"stream": Stream.SLABS}, {"seed": 6}, {"seed": 5 + (1 << 32)}]
)
def test_streams_are_independent(other):
    """A neighbouring item, sweep, stream or seed shares no words and is not correlated."""
    first, second = words(3000).ravel(), words(3000, **other).ravel()
    assert len(np.intersect1d(first, second)) <= 2  # 144 million pairs: 0.03 by chance
    assert abs(np.corrcoef(first.astype(float), second.astype(float))[0, 1]) * np.sqrt(len(first)) < 4.0


def test_streams_have_different_numbers():
    numbers = [int(stream) for stream in Stream]
    assert len(set(numbers)) == len(numbers)


def test_generator_is_a_pure_function():
    first = generator(5, Stream.ATOMS, 3).standard_normal(1000)
    generator(5, Stream.ATOMS, 4).standard_normal(10)
    np.testing.assert_array_equal(first, generator(5, Stream.ATOMS, 3).standard_normal(1000))
    np.testing.assert_array_equal(first[:10], generator(5, Stream.ATOMS, 3).standard_normal(10))


@pytest.mark.parametrize("arguments", [(6, Stream.ATOMS, 3), (5, Stream.USAGE, 3), (5, Stream.ATOMS, 4)])
def test_generators_are_independent(arguments):
    first = generator(5, Stream.ATOMS, 3).standard_normal(20_000)
    second = generator(*arguments).standard_normal(20_000)
    assert abs(np.corrcoef(first, second)[0, 1]) * np.sqrt(20_000) < 4.0
    assert not np.isin(second, first).any()
    for shift in (1, 2, 4, 8):
        assert abs(np.corrcoef(first[shift:], second[:-shift])[0, 1]) * np.sqrt(20_000) < 4.5


def test_generator_is_philox_with_seed_and_stream_for_a_key():
    seed, sweep = 2**64 - 1, 2**33 + 5
    key, counter = np.array([seed, Stream.ATOMS], np.uint64), np.array([0, 0, 0, sweep], np.uint64)
    theirs = np.random.Philox(key=key, counter=counter)
    np.testing.assert_array_equal(
        generator(seed, Stream.ATOMS, sweep).standard_normal(100),
        np.random.Generator(theirs).standard_normal(100),
    )


def test_generator_takes_the_largest_seed():
    assert (
        generator(2**64 - 1, Stream.START, 2**40).random() != generator(2**63, Stream.START, 2**40).random()
    )


def test_key_of_splits_the_seed():
    assert tuple(map(int, key_of(0x0123456789ABCDEF))) == (0x89ABCDEF, 0x01234567)


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5, "1", True, None])
def test_bad_seeds(seed):
    with pytest.raises(ValueError, match="seed must be a whole number"):
        check_seed(seed)


def test_good_seeds():
    assert check_seed(np.int64(7)) == 7 and check_seed(2**64 - 1) == 2**64 - 1
