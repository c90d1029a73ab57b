"""Structured output: how many of the answers that were to be JSON are, and match the schema of their request."""

from __future__ import annotations

from typing import Annotated, Self

from msgspec import Struct

from loadgen.metrics.run_data import RunData
from loadgen.workload.structured_output import Conformance


class StructuredOutput(Struct, frozen=True, kw_only=True):
    """Ok answers whose requests ask for JSON."""

    answers: Annotated[int, "Number of them."]
    json: Annotated[int, "Those that are JSON."]
    checked: Annotated[int, "Those of them whose schema was checked, for which the package jsonschema is needed."]
    matching: Annotated[int, "Those of them that match it."]

    @classmethod
    def of(cls, run: RunData) -> Self | None:
        """Count them; None if there are none."""
        found = {kind: run.trailer.structured.get(kind, 0) for kind in Conformance}
        answers = sum(found.values())
        if not answers:
            return None
        return cls(
            answers=answers,
            json=answers - found[Conformance.NOT_JSON],
            checked=found[Conformance.MATCHES] + found[Conformance.VIOLATES],
            matching=found[Conformance.MATCHES],
        )
