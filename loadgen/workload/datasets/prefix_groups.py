"""`PrefixGroups`: the prefixes with which prompts begin, and which of them a prompt or a session
has.
"""

import re
from functools import cached_property
from typing import Any, Self

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from loadgen.config.data import PREFIX_REPETITION, DataSettings
from loadgen.config.settings import RunSettings, seed_of
from loadgen.errors import BadInput, setting
from loadgen.workload.tokenizer.random_text import Prefix, RandomText, prefix_rows

BUCKETS, ZIPF = setting.prefix_buckets, setting.prefix_zipf
FORM = "write COUNTxTOKENS:WEIGHT of each, such as 4x1000:70,1x3000:30; TOKENS may be MIN-MAX"
MAX_PREFIXES = 100_000
REPLACED = ("prefix_repetition_num_prefixes", "prefix_repetition_prefix_len")  # by --prefix-buckets
_BUCKET = r"([0-9]{1,6})x([0-9]{1,7})(?:-([0-9]{1,7}))?(?::([0-9]{1,6}))?"


class PrefixBucket(Struct, frozen=True):
    """Prefixes of similar length.

    Attributes:
        count: How many different ones.
        low: Minimum tokens of each.
        high: Maximum tokens of each, inclusive; all lengths are equally likely.
        weight: How often they occur together, relative to other buckets.
    """

    count: int
    low: int
    high: int
    weight: int = 1


class PrefixGroups(Struct, frozen=True, dict=True):
    """The prefixes of a data set: one of all prompts, then one of each group of prompts.

    Attributes:
        common: Tokens of the prefix of all prompts; 0: there is none.
        buckets: The prefixes of the groups, which follow it; empty: there are no groups.
        in_turn: Whether the groups take turns, so that they are equal up to one prompt; else each
            is drawn.
        zipf: The exponent of Zipf's law: group k, from 1, has a share proportional to 1 / k**zipf.
            None: the weights of the buckets say it.
        seed: The seed of lengths and draws.
    """

    common: int = 0
    buckets: tuple[PrefixBucket, ...] = ()
    in_turn: bool = False
    zipf: float | None = None
    seed: int = 0

    @classmethod
    def from_settings(cls, settings: RunSettings) -> Self:
        """Create the groups from `--random-prefix-len`, `--prefix-buckets`, `--prefix-zipf`,
        `--prefix-repetition-*`.

        Raises:
            BadInput: A bucket is not written as FORM or is empty, there are too many prefixes, or
                fields exclude each other.
        """
        common, zipf, seed = (
            settings.random_prefix_len,
            settings.prefix_zipf,
            seed_of(settings, "prompts"),
        )
        repeated = settings.dataset_name == PREFIX_REPETITION
        if settings.prefix_buckets is not None:
            fields = [
                field
                for field in REPLACED
                if getattr(settings, field) != getattr(DataSettings, field)
            ]
            if repeated and fields:
                raise BadInput(
                    BUCKETS,
                    f"cannot be combined with {setting(fields[0])}",
                    "leave one of the two out",
                )
            if zipf is not None and ":" in settings.prefix_buckets:
                raise BadInput(
                    ZIPF, f"excludes the weights of {BUCKETS}", "leave the weights or this flag out"
                )
            buckets = _parse(settings.prefix_buckets)
            return cls(common, buckets, repeated and zipf is None and len(buckets) == 1, zipf, seed)
        tokens = settings.prefix_repetition_prefix_len if repeated else 0
        if tokens:
            if settings.prefix_repetition_num_prefixes > MAX_PREFIXES:
                remedy = f"give at most {MAX_PREFIXES:,}"
                raise BadInput(setting(REPLACED[0]), "too many prefixes", remedy)
            bucket = PrefixBucket(settings.prefix_repetition_num_prefixes, tokens, tokens)
            return cls(common, (bucket,), zipf is None, zipf, seed)
        if zipf is not None:
            raise BadInput(ZIPF, "there are no prefixes to draw", f"give {BUCKETS} COUNTxTOKENS")
        return cls(common, seed=seed)

    @property
    def count(self) -> int:
        """How many prefixes there are; at least one, which may be empty."""
        return sum(bucket.count for bucket in self.buckets) or 1

    def draw(self, drawing: RandomText) -> list[Prefix]:
        """Draw the prefixes of the groups, each with the common one in front."""
        common = drawing.prefix(self.common)
        if not self.buckets:
            return [common]
        generator = np.random.default_rng([self.seed, *b"prefix lengths"])
        lengths = [
            int(length)
            for bucket in self.buckets
            for length in generator.integers(
                bucket.low, bucket.high, size=bucket.count, endpoint=True
            )
        ]
        first = int(self.common > 0)  # number 0 is the common one
        rows = prefix_rows(range(first, first + len(lengths)))
        texts = drawing.texts(rows, lengths, [common] * len(lengths))
        return [
            Prefix(text, self.common + tokens) for text, tokens in zip(texts, lengths, strict=True)
        ]

    def numbers_of(self, rows: NDArray[np.int64]) -> list[int]:
        """Return the numbers of the groups of these rows or sessions, each drawn from the seed
        and the row alone.
        """
        if self.in_turn or self.count == 1:
            numbers: list[int] = (rows % self.count).tolist()
            return numbers
        shares, last = self._cumulative, self.count - 1
        drawn = (
            np.random.default_rng([self.seed, *b"prefix", row]).random() * shares[-1]
            for row in rows.tolist()
        )
        return [min(int(np.searchsorted(shares, draw, side="right")), last) for draw in drawn]

    def provenance(self) -> dict[str, Any]:
        """Return the prefixes as JSON: their tokens, and how groups are chosen."""
        prefixes = [
            {
                "count": bucket.count,
                "tokens": bucket.low if bucket.low == bucket.high else [bucket.low, bucket.high],
                "weight": bucket.weight,
            }
            for bucket in self.buckets
        ]
        chosen = (
            "in turn"
            if self.in_turn
            else "by weight"
            if self.zipf is None
            else f"zipf {self.zipf:g}"
        )
        return {"prefix_tokens": self.common} | (
            {"prefixes": prefixes, "prefix_choice": chosen} if prefixes else {}
        )

    @cached_property
    def _cumulative(self) -> NDArray[np.float64]:
        """The shares of the groups, added up; not normalized."""
        if self.zipf is not None:
            return np.cumsum(1.0 / np.arange(1, self.count + 1, dtype=np.float64) ** self.zipf)
        weights = [bucket.weight / bucket.count for bucket in self.buckets]
        return np.cumsum(np.repeat(weights, [bucket.count for bucket in self.buckets]))


def _parse(text: str) -> tuple[PrefixBucket, ...]:
    matches = [re.fullmatch(_BUCKET, part.strip(), re.ASCII) for part in text.split(",")]
    buckets = tuple(
        PrefixBucket(int(match[1]), int(match[2]), int(match[3] or match[2]), int(match[4] or 1))
        for match in matches
        if match
    )
    if len(buckets) < len(matches) or not all(
        b.count and 0 < b.low <= b.high and b.weight for b in buckets
    ):
        raise BadInput(BUCKETS, f"invalid buckets {text!r}", FORM)
    if sum(bucket.count for bucket in buckets) > MAX_PREFIXES:
        raise BadInput(BUCKETS, "too many prefixes", f"give at most {MAX_PREFIXES:,}")
    return buckets
