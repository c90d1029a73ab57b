"""`Overview`: the prompts of a data set in numbers: counts, lengths, duplicates and hashes."""

from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from loadgen.util.arrays import Int64s
from loadgen.util.number_format import percentile
from loadgen.workload.image import images
from loadgen.workload.prompt import UNPLANNED, Prompt, PromptDigest

PERCENTILES = (1, 10, 50, 90, 99)
SAMPLES = 3
MAX_BINS = 8
PROGRESS_EVERY = 64  # prompts


@dataclass(frozen=True)
class Overview:
    """Numbers about the prompts of a data set, and a few samples.

    Attributes:
        about: The provenance of the data set.
        input_tokens: Tokens of each prompt of known length, shape (k,).
        unplanned: The number of prompts of unknown length, because they repeat answers of the
            server: n - k.
        output_tokens: Maximum tokens of each answer, shape (n,).
        server_tokens: Expected input tokens by the server's count, shape (n,); None unless all are
            known.
        distinct: The number of distinct prompts.
        images: The number of images in all prompts.
        samples: The first few prompts.
        sha256: Hash of the prompts in the order of sending, as in the result of a run.
    """

    about: dict[str, Any]
    input_tokens: Int64s
    unplanned: int
    output_tokens: Int64s
    server_tokens: Int64s | None
    distinct: int
    images: int
    samples: tuple[Prompt, ...]
    sha256: str

    @classmethod
    def of(
        cls,
        prompts: Iterable[Prompt],
        origin: Callable[[], dict[str, Any]],
        progress: Callable[[int], None] = lambda done: None,
    ) -> Self:
        """Create the overview; each prompt is read once.

        Args:
            prompts: The prompts, at least one.
            origin: Called at the end; returns the provenance as JSON.
            progress: Called now and then with the number of prompts read.
        """
        inputs, outputs, server, pictures = array("q"), array("q"), array("q"), 0
        digest, samples, are_predicted = PromptDigest(), list[Prompt](), True
        for number, prompt in enumerate(prompts):
            digest.add(prompt)
            pictures += sum(1 for _ in images(prompt.messages))
            if prompt.input_tokens != UNPLANNED:
                inputs.append(prompt.input_tokens)
            outputs.append(prompt.output_tokens)
            are_predicted = are_predicted and prompt.server_tokens is not None
            server.append(prompt.server_tokens or 0)
            if number < SAMPLES:
                samples.append(prompt)
            if not number % PROGRESS_EVERY:
                progress(number)
        return cls(
            origin(),
            np.array(inputs, dtype=np.int64),
            len(outputs) - len(inputs),
            np.array(outputs, dtype=np.int64),
            np.array(server, dtype=np.int64) if are_predicted else None,
            digest.distinct,
            pictures,
            tuple(samples),
            digest.sha256,
        )

    @property
    def count(self) -> int:
        """The number of prompts."""
        return len(self.output_tokens)

    @property
    def added_tokens(self) -> tuple[int, int] | None:
        """The minimum and maximum of tokens that the server counts beyond those of a prompt;
        None if unknown.
        """
        if self.server_tokens is None:
            return None
        added = self.server_tokens - self.input_tokens
        return int(added.min()), int(added.max())

    def hashes(self) -> dict[str, str | None]:
        """Return SHA-256 in hex of `file`, `tokenizer` and `prompts`; None for what does not
        exist.
        """
        about = self.about
        return {
            "file": about.get("file_sha256"),
            "tokenizer": about.get("tokenizer_sha256"),
            "prompts": self.sha256,
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the overview as JSON, without samples; `percentiles` has PERCENTILES, min, max
        and mean in tokens.
        """
        server = self.server_tokens
        return {
            "dataset": self.about.get("name"),
            "rule": self.about.get("rule"),
            "num_prompts": self.count,
            "distinct_prompts": self.distinct,
            "images": self.images,
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
    """Return mean, min, max and PERCENTILES of lengths, interpolated linearly as in numpy."""
    values = np.percentile(lengths, PERCENTILES).tolist()
    return {
        "mean": float(lengths.mean()),
        "min": int(lengths.min()),
        **{percentile(p): value for p, value in zip(PERCENTILES, values, strict=True)},
        "max": int(lengths.max()),
    }


def bins(lengths: Int64s) -> list[tuple[int, int, int]]:
    """Return a histogram of at most `MAX_BINS` + 1 equal bins with round bounds: (first length,
    last length, count).
    """
    low, high = int(lengths.min()), int(lengths.max())
    least = -(-(high - low + 1) // MAX_BINS)  # rounded up to 1, 2, 5, 10, 20, 50, ...
    step = 1
    while step * 5 < least:
        step *= 10
    width = next(step * factor for factor in (1, 2, 5) if step * factor >= least)
    start = low // width * width
    counts = np.bincount((lengths - start) // width).tolist()
    return [
        (start + i * width, start + (i + 1) * width - 1, count) for i, count in enumerate(counts)
    ]
