"""Responses captured from real servers are read correctly with any cuts and line ends."""

import json
from typing import Any

import pytest

from loadgen.core import event_flags
from loadgen.core.pooled_answer import parse_pooled
from loadgen.core.reference_parser import parse_text
from tests.helpers import wire_reference
from tests.helpers.captured_responses import (
    FACTS,
    FOLDER,
    Golden,
    goldens,
    parsed,
    payloads,
    recorded,
    told,
    usage,
)
from tests.helpers.response_bytes import slices
from tests.helpers.thinning import thinned

GOLDENS = goldens()
LONG = 16 * 1024  # bytes: of a longer response a thousand places to cut it have to do
SPECIAL = [g for g in GOLDENS if "past_end" in g.file or "special" in g.file]
every = pytest.mark.parametrize("golden", GOLDENS, ids=lambda golden: golden.name)


@every
def test_captured_response_has_its_recorded_facts(golden: Golden) -> None:
    found = told(golden, (data for _, data in golden.response.reads))
    facts = json.dumps(found | {"events": len(payloads(golden))})
    assert found == golden.said, (
        f"if the server did say this, write it to {golden.file}{FACTS}: {facts}"
    )


@every
def test_captured_response_reads_the_same_cut_in_two(golden: Golden) -> None:
    wire = golden.wire
    for cut in thinned(range(1, len(wire), 1 if len(wire) < LONG else len(wire) // 1000), 19):
        assert told(golden, (wire[:cut], wire[cut:])) == golden.said, cut


@every
@pytest.mark.parametrize("line_end", [b"\n", b"\r", b"\r\n"], ids=["LF", "CR", "CRLF"])
def test_captured_response_reads_the_same_reframed(golden: Golden, line_end: bytes) -> None:
    wire = golden.with_line_ends(line_end)
    for step in (1, 11, 4096, len(wire)):
        assert told(golden, slices(wire, step)) == golden.said, step


@pytest.mark.parametrize(
    "golden", [g for g in GOLDENS if g.is_stream], ids=lambda golden: golden.name
)
def test_captured_events_read_the_same_with_a_parser(golden: Golden) -> None:
    events = parsed(golden)
    found: dict[str, Any] = {
        "events": len(events),
        "content_events": sum(bool(event.kinds & event_flags.CONTENT) for event in events),
        "reasoning_events": sum(event.kinds == event_flags.REASONING for event in events),
        "other_events": sum(event.kinds == event_flags.OTHER for event in events),
        "prompt_tokens": max(
            (e.prompt_tokens for e in events if e.prompt_tokens >= 0), default=None
        ),
        "completion_tokens": max(
            (e.completion_tokens for e in events if e.completion_tokens >= 0), default=None
        ),
        "finish_reason": next(
            (event.finish_reason for event in events if event.finish_reason), None
        ),
    }
    assert found == {name: golden.facts[name] for name in found}


@pytest.mark.parametrize("golden", SPECIAL, ids=lambda golden: golden.name)
def test_tokens_past_the_end_token_have_the_times_of_their_events(golden: Golden) -> None:
    record = recorded(golden)
    arrivals = [at_ns for at_ns, data in golden.response.reads for _ in data]
    said = wire_reference.read(golden.wire)
    assert record.stamps == [arrivals[offset] for offset in said.stamps]
    ends = (record.first_token, record.last_token, record.completion_tokens)
    assert ends == (record.stamps[0], record.stamps[-1], golden.response.output_tokens)


@pytest.mark.parametrize(
    "golden", [g for g in SPECIAL if g.file.startswith("vllm")], ids=lambda golden: golden.name
)
def test_each_event_of_vllm_but_that_of_the_role_bears_a_token(golden: Golden) -> None:
    record = recorded(golden)
    choices = [json.loads(payload)["choices"] for payload in payloads(golden)]
    tokens = [choice for choice in choices if choice and "role" not in choice[0].get("delta", {})]
    assert record.events == len(tokens)
    span_ns = record.last_token - record.first_token
    assert record.tpot_ns == span_ns // (golden.response.output_tokens - 1)


@pytest.mark.parametrize(
    "golden",
    [g for g in GOLDENS if not g.is_stream and g.facts["outcome"] == "ok"],
    ids=lambda golden: golden.name,
)
def test_captured_answer_in_one_piece_reads_the_same_with_a_parser(golden: Golden) -> None:
    if golden.api.length_field:
        text = parse_text(golden.body)
        found: dict[str, Any] = {
            "finish_reason": text.finish_reason,
            "prompt_tokens": text.prompt_tokens,
            "completion_tokens": text.completion_tokens,
        }
    else:
        pooled = parse_pooled(golden.body)
        found = {"results": pooled.results, "prompt_tokens": pooled.prompt_tokens}
    assert found == {name: golden.facts[name] for name in found}


@pytest.mark.parametrize(
    "golden", [g for g in GOLDENS if g.facts["outcome"] == "ok"], ids=lambda golden: golden.name
)
def test_captured_counts_are_those_of_the_usage(golden: Golden) -> None:
    assert (golden.facts["prompt_tokens"], golden.facts["completion_tokens"]) == usage(golden)


def test_facts_files_have_their_captures() -> None:
    captures = {path.name.partition(".")[0] for path in FOLDER.glob("*.jsonl*")}
    assert {path.name.removesuffix(FACTS) for path in FOLDER.glob(f"*{FACTS}")} == captures
