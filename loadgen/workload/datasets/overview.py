"""Overview: what would be sent, in numbers: how many prompts, how long, how many of them twice, and their hashes."""

from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from loadgen.util.arrays import Int64s
from loadgen.util.number_format import percentile
from loadgen.workload.prompt import UNPLANNED, Prompt
from loadgen.workload.prompt_digest import Digest

PERCENTILES = (1, 10, 50, 90, 99)
SAMPLES = 3
TELL_EVERY = 64  # prompts


@dataclass(frozen=True)
class Overview:
    """The prompts of a data set, of which all but a few samples are forgotten.

    Attributes:
        about: The data set's provenance.
        input_tokens: Of each prompt whose length is known beforehand, shape (k,).
        unplanned: How many have none, because they repeat answers of the server: n - k.
        output_tokens: Wanted of each answer, shape (n,).
        server_tokens: Expected to be counted by the server as input, shape (n,); None unless all are known.
        distinct: How many prompts there are that are unlike each other.
        samples: The first few.
        sha256: Of what is asked, in the order of sending: that of the `Digest`, as in the result of a run.
    """

    about: dict[str, Any]
    input_tokens: Int64s
    unplanned: int
    output_tokens: Int64s
    server_tokens: Int64s | None
    distinct: int
    samples: tuple[Prompt, ...]
    sha256: str

    @classmethod
    def of(
        cls,
        prompts: Iterable[Prompt],
        origin: Callable[[], dict[str, Any]],
        progress: Callable[[int], None] = lambda done: None,
    ) -> Self:
        """Look at each prompt once.

        Args:
            prompts: At least one.
            origin: Called at the end: where they come from, as JSON.
            progress: Told now and then how many have been looked at.
        """
        inputs, outputs, server = array("q"), array("q"), array("q")
        digest, samples, known = Digest(), list[Prompt](), True
        for number, prompt in enumerate(prompts):
            digest.add(prompt)
            if prompt.input_tokens != UNPLANNED:
                inputs.append(prompt.input_tokens)
            outputs.append(prompt.output_tokens)
            known = known and prompt.server_tokens is not None
            server.append(prompt.server_tokens or 0)
            if number < SAMPLES:
                samples.append(prompt)
            if not number % TELL_EVERY:
                progress(number)
        return cls(
            origin(),
            np.array(inputs, dtype=np.int64),
            len(outputs) - len(inputs),
            np.array(outputs, dtype=np.int64),
            np.array(server, dtype=np.int64) if known else None,
            digest.distinct,
            tuple(samples),
            digest.sha256,
        )

    @property
    def count(self) -> int:
        """How many prompts there are."""
        return len(self.output_tokens)

    @property
    def overhead(self) -> tuple[int, int] | None:
        """The least and the most tokens that the server counts beside a prompt's own; None where that is not known."""
        if self.server_tokens is None:
            return None
        beside = self.server_tokens - self.input_tokens
        return int(beside.min()), int(beside.max())

    def hashes(self) -> dict[str, str | None]:
        """SHA-256 in hex of the `file`, the `tokenizer` and the `prompts`; None for what there is not."""
        about = self.about
        return {"file": about.get("file_sha256"), "tokenizer": about.get("tokenizer_sha256"), "prompts": self.sha256}

    def to_dict(self) -> dict[str, Any]:
        """JSON form, without samples; `percentiles` has those of PERCENTILES, least, most and mean, in tokens."""
        server = self.server_tokens
        return {
            "dataset": self.about.get("name"),
            "rule": self.about.get("rule"),
            "num_prompts": self.count,
            "distinct_prompts": self.distinct,
            "total_input_tokens": None if self.unplanned else int(self.input_tokens.sum()),
            "total_output_tokens": int(self.output_tokens.sum()),
            "predicted_server_input_tokens": None if server is None else int(server.sum()),
            "percentiles": {
                "input_tokens": summary(self.input_tokens),
                "output_tokens": summary(self.output_tokens),
            },
            "hashes": self.hashes(),
            "provenance": self.about,
        }


def summary(lengths: Int64s) -> dict[str, float]:
    """Mean, min, max and PERCENTILES of lengths, between neighbours as numpy interpolates."""
    found = np.percentile(lengths, PERCENTILES).tolist()
    return {
        "mean": float(lengths.mean()),
        "min": int(lengths.min()),
        **{percentile(p): value for p, value in zip(PERCENTILES, found, strict=True)},
        "max": int(lengths.max()),
    }


def bins(lengths: Int64s, most: int = 8) -> list[tuple[int, int, int]]:
    """A histogram of at most `most` + 1 equal bins with round bounds: (first length, last length, how many)."""
    low, high = int(lengths.min()), int(lengths.max())
    width = _round_up(-(-(high - low + 1) // most))
    start = low // width * width
    counts = np.bincount((lengths - start) // width).tolist()
    return [(start + i * width, start + (i + 1) * width - 1, count) for i, count in enumerate(counts)]


def _round_up(width: int) -> int:
    """The next of 1, 2, 5, 10, 20, 50, ..."""
    step = 1
    while step * 5 < width:
        step *= 10
    return next(step * factor for factor in (1, 2, 5) if step * factor >= width)
