"""How fast prompts are made: `python -m bench.performance.prompt_speed --tokenizer FILE [--quick]`.

Ways to the same prompts take turns, each in a fresh process, on a ShareGPT file that is made up as
big as the published one. Ratios are taken within a round. Nothing here passes or fails: the bounds
stand beside what was measured.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.performance import sharegpt_file
from bench.performance.prompt_ways import Taken, Work, measure
from bench.table import spread, table


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured.

    Attributes:
        file_bytes: Size of the ShareGPT file.
        shared: Prompts made of it.
        random: Random prompts of `tokens` tokens, of which the rate is measured.
        prepared: Random prompts of `tokens` tokens that are prepared as a run prepares them.
        tokens: Of a random prompt.
        rounds: How often the ways take turns.
    """

    file_bytes: int = sharegpt_file.PUBLISHED_BYTES
    shared: int = 1000
    random: int = 2000
    prepared: int = 1000
    tokens: int = 1000
    rounds: int = 3


QUICK = Plan(file_bytes=1_000_000, shared=20, random=20, prepared=20, tokens=50, rounds=1)


@dataclass
class Findings:
    """What each way took in each round, and sizes in MB and numbers that say of what."""

    plan: Plan
    conversations: int = 0
    took: dict[str, list[Taken]] = field(default_factory=dict)

    def of(self, way: str, value: Callable[[Taken], float]) -> list[float]:
        """A value of a way in every round."""
        return [value(taken) for taken in self.took[way]]

    def ratios(self, way: str, other: str, value: Callable[[Taken], float]) -> list[float]:
        """How many times as much as of `other` it is of `way`, in every round."""
        return [a / b for a, b in zip(self.of(way, value), self.of(other, value), strict=True)]


def measure_all(plan: Plan, tokenizer: Path) -> Findings:
    """Carry the plan out, in folders of its own that are gone afterwards."""
    found = Findings(plan)
    with tempfile.TemporaryDirectory(prefix="loadgen-bench-") as name:
        file = Path(name) / "sharegpt.json"
        print("making the ShareGPT file", file=sys.stderr, flush=True)
        found.conversations = sharegpt_file.write(file, plan.file_bytes)
        os.environ["XDG_CACHE_HOME"] = str(Path(name) / "cache")
        for number in range(plan.rounds):
            _take_turns(found, plan, tokenizer, file, number)
    return found


def _take_turns(found: Findings, plan: Plan, tokenizer: Path, file: Path, number: int) -> None:
    shared = Work(tokenizer, file, plan.shared, 0)
    turns = {
        "exact_words": Work(tokenizer, file, plan.random, plan.tokens),
        "encoded_again": Work(tokenizer, file, plan.random // 10, plan.tokens),
        "cold": shared,
        "sampled": shared,
        "loaded": shared,
        "in_order": shared,
        "prepared": Work(tokenizer, file, plan.prepared, plan.tokens),
    }
    for name, work in turns.items():
        print(f"round {number + 1}: {name}", file=sys.stderr, flush=True)
        if name == "cold":
            _forget_pages(file)
        way = "sampled" if name == "cold" else name
        found.took.setdefault(name, []).append(measure(way, work))


def _forget_pages(file: Path) -> None:
    """Put the file out of the page cache."""
    descriptor = os.open(file, os.O_RDONLY)
    try:
        os.fsync(descriptor)  # pages that are not on disk yet are not given up
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)


def report(found: Findings) -> str:
    """The findings as a Markdown table."""
    plan = found.plan

    def rate(taken: Taken) -> float:
        return taken.tokens / taken.seconds / 1e6

    def seconds(taken: Taken) -> float:
        return taken.seconds

    def own_mb(taken: Taken) -> float:
        return taken.own_mb

    file = f"{plan.file_bytes / 1e6:.0f} MB, {found.conversations:,} conversations"
    rows = [
        (
            f"random, {plan.tokens:,} tokens: exact words, M tokens/s",
            found.of("exact_words", rate),
            "",
        ),
        ("decoded, encoded, cut, decoded, M tokens/s", found.of("encoded_again", rate), ""),
        ("how many times as fast", found.ratios("exact_words", "encoded_again", rate), ">= 10"),
        (f"ShareGPT, {plan.shared:,} prompts of {file}, s", found.of("sampled", seconds), "<= 1"),
        ("file not in memory, s", found.of("cold", seconds), "<= 2"),
        (
            "memory beside the mapping, tokenizer included, MB",
            found.of("sampled", own_mb),
            "<= 200",
        ),
        ("all loaded, encoded one by one, s", found.of("loaded", seconds), ""),
        ("its memory, MB", found.of("loaded", own_mb), ""),
        ("how many times as fast", found.ratios("loaded", "sampled", seconds), ">= 2.5"),
        (
            "how many times as fast, file not in memory",
            found.ratios("loaded", "cold", seconds),
            ">= 2.5",
        ),
        (
            f"the first {plan.shared:,} in the file's order, not encoded, s",
            found.of("in_order", seconds),
            "<= 0.1",
        ),
        (
            f"{plan.prepared:,} random prompts of {plan.tokens:,} tokens prepared, s",
            found.of("prepared", seconds),
            "< 2",
        ),
    ]
    cells = [[name, spread(values), bound] for name, values, bound in rows]
    heading = (
        "# How fast prompts are made\n\nMedians, with the least and the most; ratios are "
        "taken within each round.\n\n"
    )
    return heading + table(["", "measured", "bound"], cells)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.performance.prompt_speed", description="How fast prompts are made."
    )
    parser.add_argument(
        "--tokenizer", type=Path, required=True, help="tokenizer.json or its folder"
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="one round of little work: shows that it works, no more",
    )
    flags = parser.parse_args(argv)
    print(report(measure_all(QUICK if flags.quick else Plan(), flags.tokenizer)))


if __name__ == "__main__":
    main()
