"""The numbers of the real tools, computed by their own functions from the same bytes and times
(tests/data/tools).

`made_by` in each file names the functions; they were fed with every stream of streams.json on a
controlled clock. A program that chooses when it sends was fed with the same streams at these times,
which `sent` holds.
"""

import json
from typing import Any

import pytest

from loadgen.lab.tools.emulate.comparison import TOOLS
from loadgen.lab.tools.emulate.tool import RETOKENIZED
from tests.helpers.recorded_streams import GOLDEN, STREAMS, of_file, of_streams, rows_of, run_of

ASKED = {
    "percentile_metrics": "ttft,tpot,itl,e2el",
    "metric_percentiles": "90,99",
    "goodput": ("ttft:50", "tpot:15"),
}


def told_by(name: str) -> dict[str, Any]:
    told: dict[str, Any] = json.loads((GOLDEN / f"{name}.json").read_text())
    return told


def printed(name: str) -> dict[str, dict[str, float]]:
    groups: dict[str, Any] = told_by(name)["groups"]
    return groups


CASES = [(name, group) for name in TOOLS for group in printed(name)]


@pytest.mark.parametrize(("name", "group"), CASES)
def test_each_row_is_that_of_the_real_tool(name: str, group: str) -> None:
    records, chat = of_file(group, told_by(name).get("sent", {}).get(group))
    rows = {
        row.label: row
        for row in rows_of(
            TOOLS[name], run_of(records, chat, **ASKED), frozenset(TOOLS[name].rules)
        )
    }
    told = printed(name)[group]
    assert told
    for label, value in told.items():
        row = rows[label]
        if row.value is None:
            # It counted words where a tokenizer was to be asked.
            assert RETOKENIZED in row.notes, label
        else:
            assert row.value == pytest.approx(value, rel=1e-6, abs=1e-9), label


def test_steady_state_is_that_of_the_rust_client() -> None:
    """Two of its twelve requests were refused; one ended with the window, and others after it."""
    told = told_by("vllm-rs")["steady_state"]
    run = run_of(
        of_streams(told["streams"]), **{**ASKED, "max_concurrency": told["max_concurrency"]}
    )
    rows = {
        row.label: row.value
        for row in rows_of(TOOLS["vllm-rs"], run, frozenset(TOOLS["vllm-rs"].rules))
    }
    assert {
        label: value for label, value in rows.items() if label.startswith("SS ")
    } == pytest.approx(told["rows"])


def test_generate_is_that_of_sglang() -> None:
    """A first event of several tokens, the text again with the finish reason, an event without
    text, a cut stream.
    """
    told = told_by("sglang")["generate"]
    run = run_of(of_streams(told["streams"]), **ASKED, backend="sglang-native")
    rows = {
        row.label: row.value
        for row in rows_of(TOOLS["sglang"], run, frozenset(TOOLS["sglang"].rules))
    }
    assert {label: rows[label] for label in told["rows"]} == pytest.approx(
        told["rows"], rel=1e-6, abs=1e-9
    )


@pytest.mark.integration
def test_values_are_unknown_only_without_a_tokenizer() -> None:
    for name, group in CASES:
        records, chat = of_file(group)
        rows = rows_of(TOOLS[name], run_of(records, chat, **ASKED), frozenset(TOOLS[name].rules))
        withheld = {
            row.label for row in rows if row.value is None and row.label in printed(name)[group]
        }
        assert not withheld or (
            name.startswith("vllm") and group in ("cut", "completions without usage")
        ), (name, group)


def test_every_tool_has_every_group_of_streams() -> None:
    missing = [(name, group) for name in TOOLS for group in STREAMS if group not in printed(name)]
    # Each fails on the chunk of usage, for which it does not ask.
    assert missing == [("sglang", "completions")]
