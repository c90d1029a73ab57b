"""ToolResult: the result of one run of another tool, as its file has it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from loadgen.errors import BadInput
from loadgen.lab.audit.auditor import audit_result
from loadgen.lab.audit.files import results
from loadgen.lab.audit.published import Published
from loadgen.lab.tools.tool_requests import ToolRequests

VLLM, VLLM_RS, SGLANG = "vllm bench serve", "vllm-rs bench serve", "SGLang's bench_serving"
DETAILS = {VLLM: "--save-detailed", VLLM_RS: "--save-detailed", SGLANG: "--output-details"}
GENERATE = ("sglang", "sglang-native")  # SGLang's names of its own API
TO_VLLM = {"total_throughput": "total_token_throughput"}  # SGLang's keys -> vLLM's of the same meaning


@dataclass(frozen=True)
class ToolResult:
    """The result of one run of `vllm bench serve`, its client in Rust, or SGLang's `bench_serving`.

    Attributes:
        where: The path of its file, and the line if it is one of several; for messages.
        published: Its numbers, for the audit.
    """

    where: str
    published: Published

    @property
    def tool(self) -> str:
        """The tool that wrote it."""
        data = self.published.data
        if "mean_e2e_latency_ms" in data:
            return SGLANG
        return VLLM_RS if "steady_state" in data or "max_model_len" in data else VLLM

    @cached_property
    def flat(self) -> Mapping[str, Any]:
        """Its values, by the names of `vllm bench serve`."""
        names = {name: TO_VLLM.get(name, name.replace("_e2e_latency_ms", "_e2el_ms")) for name in self.published.data}
        return {name: self.published.data[given] for given, name in names.items()}

    @property
    def gap(self) -> str:
        """What loadgen calls its ITL: icl, the gap between events; itl where it divides a gap by the tokens."""
        return "itl" if self.tool == SGLANG and self.flat.get("backend") in GENERATE else "icl"

    @cached_property
    def requests(self) -> ToolRequests | None:
        """The values of single requests; None if it was saved without them.

        Raises:
            BadInput: They are not whole.
        """
        return ToolRequests.of(self.flat, self.gap, self.where)

    def number(self, name: str) -> float | None:
        """Return a number by vLLM's name; None if it has none."""
        value = self.flat.get(name)
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None

    @property
    def about(self) -> str:
        """Say what it is, and how its latencies were measured."""
        return (
            f"a result of {self.tool}: latencies are as that tool measures them, from send and between chunks; "
            "there is no verdict, and nothing is known of the client's error"
        )

    @property
    def audit(self) -> str:
        """Say in one line what `loadgen audit` finds in it."""
        wrong = [finding for finding in audit_result(self.published) if not finding.note]
        if not wrong:
            return "audit: no inconsistent numbers"
        first = wrong[0]
        should = f", should be {first.should_be}" if first.should_be else ""
        more = f", and {len(wrong) - 1} more" if len(wrong) > 1 else ""
        return f"audit: {first.rule}: {first.says}{should}{more}: see loadgen audit {first.place.file}"


def read(path: str) -> list[ToolResult]:
    """Read the results of another tool in a file: one JSON object, a list, or one object in each line.

    Returns:
        Empty if the file holds none of a tool that is known.

    Raises:
        BadInput: The file cannot be read.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise BadInput("FILE", f"{path}: {error.strerror}", "name a result") from error
    except UnicodeDecodeError:
        return []
    try:
        found = results(path, text)
    except (BadInput, json.JSONDecodeError):
        return []
    if not all(each.data and "loadgen" not in each.data for each in found):
        return []
    alone = len(found) == 1
    return [ToolResult(path if alone else f"{path}: line {each.place.line}", each) for each in found]
