"""Brief: a result in its single numbers, and what was wrong with the run."""

from collections.abc import Mapping
from typing import Any

# What was judged of a run, by the names that its result has under `loadgen`.
OF_RESULT = (
    *("verdict", "overloaded", "simulated", "error_rate", "client_error_rate", "slo", "closed_loop"),
    *("finish_reasons", "outcomes"),
)


def brief(data: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers of a result that stand for it elsewhere: all single values, and what was judged of them."""
    own = data["loadgen"]
    plain = {name: value for name, value in data.items() if not isinstance(value, dict | list)}
    given = [pair.partition("=")[0].strip() for pair in own["provenance"]["settings"]["metadata"]]
    judged = {name: own.get(name) for name in OF_RESULT} | {"reasons": reasons(data), "metadata": given}
    prompts = own["provenance"].get("prompts") or {}
    return plain | {"loadgen": judged | {"prompts_sha256": prompts.get("sha256")}}


def failed(data: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The checks of a result for which it is not VALID."""
    return [check for check in data["loadgen"]["checks"] if check["ok"] is False and check["counts"]]


def noted(data: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The checks of a result that did not pass, and leave the verdict alone."""
    return [check for check in data["loadgen"]["checks"] if check["ok"] is False and not check["counts"]]


def seen(check: Mapping[str, Any]) -> str:
    """What a check saw, and what was allowed."""
    return f"{check['value']}, limit {check['limit']}"


def reasons(data: Mapping[str, Any], group: str = "") -> list[str]:
    """Why a result is not VALID, a line each.

    Args:
        data: The result.
        group: Of the checks that are meant; all.
    """
    return [f"{check['name']}: {seen(check)}" for check in failed(data) if group in ("", check["group"])]
