"""Prompts of given lengths, and overviews of them."""

from typing import Any

from loadgen.workload.datasets.overview import Overview
from loadgen.workload.prompt import Prompt


def prompts(*lengths: int, outputs: int = 5, server: int | None = None) -> list[Prompt]:
    """Prompts of these lengths; with `server`, the server counts so many tokens more."""
    return [
        Prompt(
            f"text {number}",
            length,
            outputs,
            f"row/{number}",
            server_tokens=server and length + server,
        )
        for number, length in enumerate(lengths)
    ]


def overview(*given: Prompt, **about: Any) -> Overview:
    """The overview of a data set with these prompts."""
    return Overview.of(given, lambda: {"name": "mine", "rule": "plain"} | about)
