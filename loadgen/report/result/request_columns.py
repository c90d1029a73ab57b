"""Columns of requests: what --save-detailed keeps, in the order of the schedule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Self

import numpy as np
from msgspec import UNSET, Struct, UnsetType

from loadgen.metrics.snapshot import Snapshot

TIME_COLUMNS = ("ttfts", "itls")
TOKEN_COLUMNS = (*TIME_COLUMNS, "output_lens", "generated_texts")


class RequestColumns(Struct, frozen=True, kw_only=True):
    """What `--save-detailed` keeps: lists with an item for each request, in the order of the schedule."""

    input_lens: Annotated[list[int], "Prompt tokens, as the server counts them, else as planned."]
    output_lens: Annotated[
        list[int] | UnsetType, "Output tokens; 0 where the request failed. Missing where answers have no tokens."
    ] = UNSET
    ttfts: Annotated[
        list[float] | UnsetType,
        "TTFT from sent, s; 0 where the request failed. Missing where answers come in one piece.",
    ] = UNSET
    itls: Annotated[
        list[list[float]] | UnsetType,
        "Gaps between the events with tokens, s. Missing where answers come in one piece.",
    ] = UNSET
    latencies: Annotated[list[float], "E2EL from sent, s; 0 where the request failed."]
    start_times: Annotated[list[float], "When it was sent, s on CLOCK_MONOTONIC; 0 where it never was."]
    queue_times: Annotated[list[float], "From due to sent, s."]
    generated_texts: Annotated[
        list[str] | UnsetType,
        "The text of the answer, without reasoning; empty where the request failed. Missing where answers have no "
        "tokens.",
    ] = UNSET
    errors: Annotated[list[str], "Why the request failed; empty where it did not."]
    targets: Annotated[list[int] | UnsetType, "With several targets, the number of its target, from 0."] = UNSET
    classes: Annotated[list[int] | UnsetType, "With classes of requests, the number of its class, from 0."] = UNSET

    @classmethod
    def of(cls, snapshot: Snapshot, *, streams: bool = True, generates: bool = True) -> Self | None:
        """Sort what was kept of each request by its number in the run; None where nothing was kept.

        Args:
            snapshot: The snapshot of the run.
            streams: Whether answers are streams of tokens; else the times of tokens are left out.
            generates: Whether answers have tokens; else all columns of tokens are left out.
        """
        if snapshot.details is None:
            return None
        order = sorted(range(len(snapshot.index)), key=snapshot.index.__getitem__)
        columns: dict[str, Any] = {name: [kept[i] for i in order] for name, kept in vars(snapshot.details).items()}
        absent = () if streams else TIME_COLUMNS if generates else TOKEN_COLUMNS
        columns = {name: kept for name, kept in columns.items() if name not in absent}
        for name, parts in (("targets", snapshot.targets), ("classes", snapshot.classes)):
            if parts:
                columns[name] = _part_numbers(parts)
        return cls(**columns)


def _part_numbers(parts: Sequence[Snapshot]) -> list[int]:
    numbers = np.repeat(np.arange(len(parts)), [len(part.index) for part in parts])
    found: list[int] = numbers[np.argsort(np.concatenate([part.index for part in parts]), kind="stable")].tolist()
    return found
