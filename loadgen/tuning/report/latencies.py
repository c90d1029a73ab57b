"""Latencies: distributions of a run, out of the whole result that is kept of it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from loadgen.core.histogram import Histogram
from loadgen.errors import BadInput
from loadgen.tuning.execute.trial import Ran

Curve = tuple[list[float], list[float]]  # ms, ascending, and the share of all values that are no more
# What is shown, by the names of the histograms: as a client sees it, from when a request was due.
SHOWN = {"ttft_due": "TTFT", "tpot": "TPOT", "e2el_due": "E2EL"}


def curves(folder: Path, ran: Ran) -> dict[str, Curve]:
    """The distributions by what they are called; none where the result is no more there, or is not ours.

    Args:
        folder: The store's.
        ran: The run.

    Raises:
        BadInput: The result cannot be read.
    """
    path = folder / ran.path
    if not path.is_file():
        return {}
    try:
        kept = orjson.loads(path.read_bytes())["loadgen"].get("histograms", {})
        return {title: _curve(Histogram.from_dict(kept[name])) for name, title in SHOWN.items() if _there(kept, name)}
    except (OSError, orjson.JSONDecodeError, KeyError, TypeError, BadInput) as error:
        problem = f"is not the whole result of a run ({error})"
        raise BadInput(str(path), problem, "put it back, or remove it: the report does without") from error


def _there(kept: Mapping[str, Any], name: str) -> bool:
    return bool(kept.get(name, {}).get("count"))


def _curve(histogram: Histogram) -> Curve:
    values, shares, below = list[float](), list[float](), 0
    for lowest, highest, count in histogram:
        below += count
        values.append((lowest + highest) / 2 / 1e6)
        shares.append(below / histogram.count)
    return values, shares
