"""Random words: uniform below any number, repeatable under a key, unrelated otherwise."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dphmm.errors import ArgumentError
from dphmm.noise.randomness import (
    FIRST_WORDS,
    SHORT,
    KeyedRandomness,
    SecureRandomness,
    SeededRandomness,
    Words,
    encoded,
)

KEY = bytes(range(32))
DRAWS = 20_000
ONE_IN_A_MILLION = 1e-6  # the words are fixed, so a test passes always or never

SOURCES = {
    "keyed": lambda: KeyedRandomness(KEY),
    "seeded": lambda: SeededRandomness(np.random.default_rng(5)),
    "secure": SecureRandomness,
}


def words_from(bits, *numbers):
    """Words that spell these numbers, the high halves first, and go on with zeros."""
    digits = [
        number >> shift & 0xFFFFFFFF for number in numbers for shift in range(bits - 32, -1, -32)
    ]
    data = b"".join(digit.to_bytes(4, "little") for digit in digits)
    return Words(lambda size: data.ljust(size, b"\0")[:size])


def taken(words, count=2 * FIRST_WORDS + 3):
    return [words.word() for _ in range(count)]


# Paper: there is nothing about random words in it; these are the promises of the design page.


def test_a_key_repeats_its_words_and_nothing_else_does():
    keyed = KeyedRandomness(KEY)
    assert taken(keyed.words((b"a",), 3)) == taken(KeyedRandomness(KEY).words((b"a",), 3))
    secure = SecureRandomness()
    assert taken(secure.words((b"a",), 3)) != taken(secure.words((b"a",), 3))
    seeded = SeededRandomness(np.random.default_rng(5))
    assert taken(seeded.words((), 0)) != taken(seeded.words((), 0))


def test_every_part_of_the_question_changes_the_words():
    asked = [
        (KEY, (b"ann", b"1"), 3),
        (KEY[::-1], (b"ann", b"1"), 3),
        (KEY, (b"ann", b"1"), 4),
        (KEY, (b"ann", b"2"), 3),
        (KEY, (b"an", b"n1"), 3),
        (KEY, (b"ann1",), 3),
        (KEY, (b"ann", b"1", b""), 3),
        (KEY, (b"ann", b"1", b"3"), 3),
        (KEY, (b"ann",), 13),
    ]
    words = {tuple(taken(KeyedRandomness(key).words(*rest), 8)) for key, *rest in asked}
    assert len(words) == len(asked)


def test_only_a_named_experiment_is_not_private():
    assert SecureRandomness().private
    assert KeyedRandomness(KEY).private
    assert not SeededRandomness(np.random.default_rng(0)).private


@pytest.mark.parametrize(
    ("key", "said"), [(KEY[:31], "got 31"), (KEY + b"!", "got 33"), ("k" * 32, "got str")]
)
def test_a_key_of_the_wrong_kind_is_refused_and_not_shown(key, said):
    with pytest.raises(ArgumentError, match="key must be 32 bytes") as caught:
        KeyedRandomness(key)
    assert said in str(caught.value)
    shown = key if isinstance(key, str) else repr(key)[2:-1]
    assert shown not in str(caught.value)


def test_a_keyed_source_does_not_show_its_key():
    for text in (repr(KeyedRandomness(KEY)), str(KeyedRandomness(KEY))):
        assert KEY.hex() not in text
        assert repr(KEY)[2:-1] not in text


# Laws


@given(st.lists(st.binary(max_size=6), max_size=4), st.lists(st.binary(max_size=6), max_size=4))
def test_no_two_lists_of_fields_have_the_same_encoding(a, b):
    assert (encoded(tuple(a)) == encoded(tuple(b))) == (a == b)


@pytest.mark.parametrize("source", SOURCES)
def test_words_go_on_after_the_first_ones_without_repeating(source):
    words = taken(SOURCES[source]().words((b"question",), 1), 9 * FIRST_WORDS)
    assert len(set(words)) == len(words)
    assert max(words) < 2**32


@given(st.integers(1, 2**200), st.integers(0, 2**32))
def test_a_number_below_n_is_below_n(n, state):
    words = KeyedRandomness(KEY).words((), state)
    assert all(0 <= words.below(n) < n for _ in range(5))


# Oracle


@pytest.mark.parametrize("n", [2, 3, 5, SHORT, SHORT + 1, 2**63, 2**63 + 1, 2**64 - 1, 2**64])
def test_a_number_in_the_last_broken_run_is_thrown_away(n):
    bits = 32 if n <= SHORT else 64
    limit = 2**bits - 2**bits % n
    assert words_from(bits, limit - 1, 1).below(n) == (limit - 1) % n
    if limit < 2**bits:
        assert words_from(bits, limit, 1).below(n) == 1 % n
        assert words_from(bits, 2**bits - 1, limit, 1).below(n) == 1 % n


@pytest.mark.parametrize("n", [2**64 + 1, 2**65 - 1, 2**128, 2**130 + 7])
def test_large_numbers_take_several_words_with_the_highest_first(n):
    bits = 128 if n <= 2**128 else 192
    value = sum(digit << 32 * i for i, digit in enumerate(range(1, bits // 32 + 1)))
    assert words_from(bits, value).below(n) == value % n
    if 2**bits % n:
        assert words_from(bits, 2**bits - 1, value).below(n) == value % n


@pytest.mark.parametrize("n", [1, 2, 3, 7, 64, 100])
@pytest.mark.parametrize("source", ["keyed", "seeded"])
def test_numbers_below_n_are_uniform(source, n):
    words = SOURCES[source]().words((b"uniform",), n)
    counts = Counter(words.below(n) for _ in range(DRAWS))
    if n > 1:
        assert len(counts) == n
        assert stats.chisquare(list(counts.values())).pvalue > ONE_IN_A_MILLION


def test_words_are_uniform_bit_by_bit():
    words = taken(KeyedRandomness(KEY).words((b"bits",), 0), DRAWS)
    shifts = np.arange(32, dtype=np.uint32)
    bits = ((np.array(words, dtype=np.uint32)[:, None] >> shifts) & 1).sum(axis=0)
    # 32 two-sided binomial tests, so each may be as unlikely as a 32nd of the whole.
    for count in (bits.min(), bits.max()):
        assert stats.binomtest(int(count), DRAWS).pvalue > ONE_IN_A_MILLION / 32


def test_a_biased_draw_would_be_seen():
    """Without throwing words away, 3 * 2**62 would fall on its first third twice as often."""
    n = 3 * 2**62
    words = KeyedRandomness(KEY).words((b"bias",), 0)
    honest = sum(words.below(n) < n // 3 for _ in range(DRAWS))
    naive = sum(words.word() % n < n // 3 for _ in range(DRAWS))
    third = float(Fraction(1, 3))
    assert stats.binomtest(honest, DRAWS, third).pvalue > ONE_IN_A_MILLION
    assert stats.binomtest(naive, DRAWS, third).pvalue < ONE_IN_A_MILLION
