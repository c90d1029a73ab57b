"""`PrefixBuckets`: prefixes of several lengths, some more frequent than others, one of which begins each session."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from loadgen.errors import BadInput
from loadgen.workload.tokenizer.random_text import RandomText

FIELD = "--prefix-buckets"
FORM = "write COUNTxTOKENS:WEIGHT of each, such as 4x1000:70,1x3000:30"
MAX_PREFIXES = 100_000
_BUCKET = re.compile(r"([0-9]{1,6})x([0-9]{1,7})(?::([0-9]{1,6}))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class PrefixBucket:
    """Prefixes of one length.

    Attributes:
        count: How many different ones.
        tokens: Tokens of each.
        weight: How often they occur together, relative to other buckets.
    """

    count: int
    tokens: int
    weight: int = 1


@dataclass(frozen=True, slots=True)
class PrefixBuckets:
    """Buckets of prefixes, and which prefix a session begins with.

    Attributes:
        buckets: The buckets; none: no session has a prefix.
        seed: The seed of the choice.
    """

    buckets: tuple[PrefixBucket, ...]
    seed: int

    @classmethod
    def parse(cls, text: str | None, tokens: int, seed: int) -> "PrefixBuckets":
        """Parse `--prefix-buckets`; without it all sessions have one prefix of `tokens` tokens, or none for 0.

        Raises:
            BadInput: A bucket is not written as FORM, is empty, or there are too many prefixes.
        """
        if text is None:
            return cls((PrefixBucket(1, tokens),) if tokens else (), seed)
        matches = [_BUCKET.fullmatch(part.strip()) for part in text.split(",")]
        if tokens:
            raise BadInput(FIELD, "cannot be combined with --random-prefix-len", "leave one of the two out")
        found = [PrefixBucket(int(match[1]), int(match[2]), int(match[3] or 1)) for match in matches if match]
        if len(found) < len(matches) or any(not (one.count and one.tokens and one.weight) for one in found):
            raise BadInput(FIELD, f"invalid buckets {text!r}", FORM)
        if sum(bucket.count for bucket in found) > MAX_PREFIXES:
            raise BadInput(FIELD, f"more than {MAX_PREFIXES} prefixes", "give fewer")
        return cls(tuple(found), seed)

    def draw_texts(self, drawing: RandomText) -> list[tuple[str, int]]:
        """Draw the prefixes in the order of the buckets, each with its tokens."""
        drawn: list[tuple[str, int]] = []
        for bucket in self.buckets:
            numbers = range(len(drawn), len(drawn) + bucket.count)
            drawn += [(text, bucket.tokens) for text in drawing.prefixes(bucket.tokens, numbers)]
        return drawn

    def number_of(self, session: int) -> int:
        """Return the number of the prefix of a session, in the order of the buckets."""
        shares: Sequence[float] = [bucket.weight / bucket.count for bucket in self.buckets for _ in range(bucket.count)]
        if len(shares) == 1:
            return 0
        generator = np.random.default_rng([self.seed, *b"prefix", session])
        return int(np.searchsorted(np.cumsum(shares), generator.random() * sum(shares), side="right"))
