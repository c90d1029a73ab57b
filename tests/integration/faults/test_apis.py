"""Faults in the events of Responses and Messages: each record says the same as one of chat."""

import pytest

from loadgen.core.outcome import Outcome
from loadgen.testing.faulty import Faulty
from loadgen.util.redaction import MARK
from loadgen.workload.endpoints.api import Api
from loadgen.workload.endpoints.generation import MESSAGES, RESPONSES
from tests.helpers.fault_requests import TOKENS, Sender

APIS = {"responses": (RESPONSES, "max_output_tokens"), "messages": (MESSAGES, "max_tokens")}
# What the server plays; the outcome; the token-bearing events; the tokens that the server counts;
# what the record says.
FAULTS = [
    ("none", Outcome.OK, TOKENS, TOKENS, None),
    ("byte-by-byte", Outcome.OK, TOKENS, TOKENS, None),
    ("cut-chunking", Outcome.OK, TOKENS, TOKENS, None),
    ("cr", Outcome.OK, TOKENS, TOKENS, None),
    ("comments", Outcome.OK, TOKENS, TOKENS, None),
    ("no-done", Outcome.OK, TOKENS, TOKENS, None),
    ("usage-absent", Outcome.OK, TOKENS, -1, None),
    ("no-finish", Outcome.TRUNCATED, TOKENS, -1, "without a finish reason"),
    ("eof:2", Outcome.TRUNCATED, 2, -1, "mid-stream"),
    ("rst:2", Outcome.TRUNCATED, 2, -1, "reset by peer"),
    ("stream-error", Outcome.STREAM_ERROR, 1, -1, "the fault stream-error"),
    ("stream-error-done", Outcome.STREAM_ERROR, 1, -1, "the fault stream-error-done"),
    ("error-after-end", Outcome.OK, TOKENS, TOKENS, None),
    ("bad-json", Outcome.PROTOCOL_ERROR, 1, -1, "no chunk of an answer"),
    ("json-error", Outcome.STREAM_ERROR, 0, -1, "the fault json-error"),
    ("status:500", Outcome.STATUS, 0, -1, f"the fault {MARK}"),  # a header that the server repeats
]


@pytest.mark.parametrize("name", APIS)
@pytest.mark.parametrize(
    ("fault", "outcome", "events", "tokens", "said"), FAULTS, ids=[row[0] for row in FAULTS]
)
async def test_a_fault_is_told_as_in_chat(
    faulty: Faulty,
    name: str,
    fault: str,
    outcome: Outcome,
    events: int,
    tokens: int,
    said: str | None,
) -> None:
    api: Api
    api, reason = APIS[name]
    async with Sender(faulty.url, api=api) as sender:
        record = await sender.one(fault)
    assert (record.outcome, record.events, record.completion_tokens) == (outcome, events, tokens)
    assert (record.detail is None) if said is None else said in (record.detail or "")
    assert outcome is not Outcome.OK or record.finish_reason == reason
    assert record.ordered
