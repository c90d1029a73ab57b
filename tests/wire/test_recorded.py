"""Streams recorded from real servers read as what they are, cut anywhere, with any line ends."""

from pathlib import Path

import pytest

from loadgen.outcomes import Outcome
from tests.wire.bytes_of import HEAD, chunked, read, slices

FOLDER = Path(__file__).parent.parent / "data" / "sse"
# file: outcome, content, reasoning, completion tokens by usage, finish reason, [DONE]
RECORDED = {
    "llamacpp_chat": (Outcome.OK, 8, 0, -1, "length", True),
    "llamacpp_grammar_think": (Outcome.OK, 11, 0, -1, "stop", True),
    "llamacpp_include_usage": (Outcome.OK, 8, 0, 8, "length", True),
    "llamacpp_killed_midstream": (Outcome.TRUNCATED, 291, 0, -1, None, False),
    "tfserve_include_usage": (Outcome.OK, 8, 13, 24, "length", False),
    "vllm_chat_nothink": (Outcome.OK, 8, 0, -1, "length", True),
    "vllm_continuous_usage": (Outcome.OK, 0, 2, 3, "length", True),
    "vllm_dummy_random_content": (Outcome.OK, 12, 0, 12, "length", True),
    "vllm_dummy_random_reasoning": (Outcome.OK, 0, 12, 12, "length", True),
    "vllm_killed_midstream": (Outcome.TRUNCATED, 0, 436, -1, None, False),
    "vllm_reasoning_include_usage": (Outcome.OK, 28, 13, 44, "stop", True),
    "xpydsim_include_usage": (Outcome.OK, 5, 0, 5, "length", True),
}


@pytest.mark.parametrize("name", RECORDED)
@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"], ids=["LF", "CR", "CRLF"])
def test_a_recorded_stream_has_its_outcome_tokens_and_usage(name: str, end: bytes) -> None:
    body = (FOLDER / f"{name}.sse").read_bytes().replace(b"\n", end)
    wire = HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunked(body, 997)
    if name.endswith("killed_midstream"):
        wire = wire.removesuffix(b"0\r\n\r\n")
    for step in (1, 11, 4096, len(wire)):
        _, record = read(slices(wire, step), closed=True)
        seen = (record.outcome, record.content_events, record.reasoning_events, record.completion_tokens)
        assert (*seen, record.finish_reason, record.done_seen) == RECORDED[name], step


def test_every_recorded_stream_is_listed() -> None:
    assert {path.stem for path in FOLDER.glob("*.sse")} == RECORDED.keys()
