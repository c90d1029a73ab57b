"""Every server fault gives one record with its outcome, is sent once, and leaves others
unaffected.
"""

import re

import pytest
from msgspec import structs

from loadgen.client.timeouts import Timeouts
from loadgen.core.http1 import EVENTS_PER_TOKEN, MAX_EVENTS
from loadgen.core.outcome import Outcome
from loadgen.testing.faults import FAULTS
from loadgen.testing.faulty import Faulty
from loadgen.util.clock import now_ns
from loadgen.util.redaction import MARK
from tests.helpers.fault_requests import PROMPT, TOKENS, S, Sender, assert_good, neighbours, until
from tests.helpers.source import ROOT

# What the server plays; the outcome; how many token-bearing events came before it; what the record
# says of it.
FAILURES = [
    ("reset", Outcome.REFUSED, 0, "reset by peer"),
    ("close", Outcome.REFUSED, 0, "without a response"),
    ("cut-head", Outcome.PROTOCOL_ERROR, 0, "inside the response head"),
    ("not-http", Outcome.PROTOCOL_ERROR, 0, "not an HTTP/1 response"),
    ("json-error", Outcome.STREAM_ERROR, 0, "the fault json-error"),
    ("json-answer", Outcome.PROTOCOL_ERROR, 0, "in one piece"),
    ("eof:0", Outcome.TRUNCATED, 0, "mid-stream"),
    ("eof:2", Outcome.TRUNCATED, 2, "mid-stream"),
    ("eof-before-done", Outcome.TRUNCATED, TOKENS, "mid-stream"),
    ("rst:2", Outcome.TRUNCATED, 2, "reset by peer"),
    ("cut-chunk", Outcome.TRUNCATED, 3, "mid-stream"),
    ("bad-chunk", Outcome.PROTOCOL_ERROR, 1, "hexadecimal"),
    ("long-chunk", Outcome.PROTOCOL_ERROR, 1, "longer than its size"),
    ("short-length", Outcome.TRUNCATED, 3, "inside an event"),
    ("long-length", Outcome.OK, TOKENS, "after the end of the answer"),
    ("stream-error", Outcome.STREAM_ERROR, 1, "the fault stream-error"),
    ("stream-error-done", Outcome.STREAM_ERROR, 1, "the fault stream-error-done"),
    ("done-only", Outcome.EMPTY, 0, "no token"),
    ("no-choices", Outcome.EMPTY, 0, "no token"),
    ("role-only", Outcome.EMPTY, 0, "no token"),
    ("choice-index", Outcome.PROTOCOL_ERROR, 1, "choice 1 of several"),
    ("bad-json", Outcome.PROTOCOL_ERROR, 1, "no chunk of an answer"),
    *(
        (f"wrong-shape:{shape}", Outcome.PROTOCOL_ERROR, 1, "no chunk of an answer")
        for shape in range(7)
    ),
    ("endless-header", Outcome.PROTOCOL_ERROR, 0, "head too long"),
    ("endless-line", Outcome.PROTOCOL_ERROR, 0, "line without end"),
    ("endless-event", Outcome.PROTOCOL_ERROR, 0, "event without end"),
    ("endless-json", Outcome.PROTOCOL_ERROR, 0, "JSON body without end"),
    ("endless-chunk-size", Outcome.PROTOCOL_ERROR, 0, "chunk header too long"),
]
# What the server plays; what comes of it over the transport that reads compressed bodies.
COMPRESSED = [
    ("gzip", Outcome.OK, TOKENS),
    ("bad-gzip", Outcome.PROTOCOL_ERROR, 0),
    ("bad-gzip-later", Outcome.PROTOCOL_ERROR, 1),
    ("cut-gzip", Outcome.TRUNCATED, 0),
]
STATUSES = [f"status:{code}" for code in (400, 401, 404, 429, 500, 503)] + [
    "redirect:301",
    "redirect:307",
]
# What the server plays; the token-bearing events that are counted; the tokens that the server says
# there were.
ODDITIES = [
    ("none", TOKENS, TOKENS),
    ("interim", TOKENS, TOKENS),
    ("length", TOKENS, TOKENS),
    ("until-close", TOKENS, TOKENS),
    ("connection-close", TOKENS, TOKENS),
    ("keep-alive", TOKENS, TOKENS),
    ("close-after", TOKENS, TOKENS),
    ("close-on-reuse", TOKENS, TOKENS),
    ("after-end", TOKENS, TOKENS),
    ("error-after-end", TOKENS, TOKENS),
    ("cut-chunking", TOKENS, TOKENS),
    ("no-finish", TOKENS, TOKENS),
    ("no-done", TOKENS, TOKENS),
    ("after-done", TOKENS, TOKENS),
    ("reasoning", TOKENS + 2, -1),
    ("tool-calls", TOKENS + 1, -1),  # the name of the tool, too
    ("usage-end", TOKENS, TOKENS),
    ("usage-each", TOKENS, TOKENS),
    ("usage-absent", TOKENS, -1),
    ("many-tokens:3", 2, TOKENS),
    ("one-segment", TOKENS, TOKENS),
    ("byte-by-byte", TOKENS, TOKENS),
    ("split-utf8", TOKENS, -1),
    ("cr", TOKENS, TOKENS),
    ("crlf", TOKENS, TOKENS),
    ("bom", TOKENS, TOKENS),
    ("comments", TOKENS, TOKENS),
    ("multi-line", TOKENS, TOKENS),
    ("no-space", TOKENS, TOKENS),
    ("no-blank-line", TOKENS, -1),
    ("long-line:1000000", 1, -1),
    ("many-events:100000", 100_000, 100_000),
    ("null-delta", TOKENS, TOKENS),
]
LIMIT = S // 2
FIRST_TOKEN, STALL, WHOLE = (
    Timeouts(10 * S, **{name: LIMIT}) for name in ("first_token", "stall", "whole")
)
# What the server plays; the limit that is set; the outcome; the token-bearing events before it.
SILENCES = [
    ("silence", FIRST_TOKEN, Outcome.TIMEOUT_FIRST_TOKEN, 0),
    ("headers-silence", FIRST_TOKEN, Outcome.TIMEOUT_FIRST_TOKEN, 0),
    ("stall:0", FIRST_TOKEN, Outcome.TIMEOUT_FIRST_TOKEN, 0),
    ("stall:2", STALL, Outcome.STALLED, 2),
    ("headers-silence", STALL, Outcome.STALLED, 0),
    ("stall:2", WHOLE, Outcome.TIMEOUT, 2),
    ("endless-pings", FIRST_TOKEN, Outcome.TIMEOUT_FIRST_TOKEN, 0),
    ("endless-interim", FIRST_TOKEN, Outcome.TIMEOUT_FIRST_TOKEN, 0),
]
ENDLESS_GZIP = ("endless-gzip", FIRST_TOKEN, Outcome.TIMEOUT_FIRST_TOKEN, 0)


@pytest.mark.parametrize(
    ("fault", "outcome", "events", "said"), FAILURES, ids=[row[0] for row in FAILURES]
)
async def test_a_failure_is_told_by_what_failed(
    faulty: Faulty, fault: str, outcome: Outcome, events: int, said: str
) -> None:
    async with Sender(faulty.url) as sender:
        async with neighbours(sender):
            record = await sender.one(fault)
        assert (record.outcome, record.events) == (outcome, events)
        assert said in (record.detail or "")
        assert "\n" not in (record.detail or "")
        assert record.ordered
    assert faulty.requests == sender.sent


@pytest.mark.parametrize("fault", [*(row[0] for row in COMPRESSED), "endless-gzip"])
async def test_a_compressed_answer_names_the_transport_that_reads_it(
    faulty: Faulty, fault: str
) -> None:
    async with Sender(faulty.url) as sender:
        async with neighbours(sender):
            record = await sender.one(fault)
        assert (record.outcome, record.events) == (Outcome.PROTOCOL_ERROR, 0)
        assert "--transport aiohttp" in (record.detail or "")
    assert faulty.requests == sender.sent


@pytest.mark.parametrize("fault", STATUSES)
async def test_status_outcome_is_not_followed_or_repeated(faulty: Faulty, fault: str) -> None:
    async with Sender(faulty.url) as sender:
        async with neighbours(sender):
            record = await sender.one(fault)
        assert (record.outcome, record.status) == (Outcome.STATUS, int(fault[-3:]))
        assert record.events == 0
        if fault.startswith("status"):
            # The server repeats a header, which may be a secret.
            assert f"the fault {MARK}" in (record.detail or "")
    assert faulty.requests == sender.sent


@pytest.mark.parametrize(("fault", "events", "tokens"), ODDITIES, ids=[row[0] for row in ODDITIES])
async def test_an_odd_answer_is_a_good_one(
    faulty: Faulty, fault: str, events: int, tokens: int
) -> None:
    async with Sender(faulty.url) as sender:
        async with neighbours(sender):
            record = await sender.one(fault)
        assert (record.outcome, record.detail) == (Outcome.OK, None)
        assert (record.events, record.completion_tokens) == (events, tokens)
        assert record.ordered
    assert faulty.requests == sender.sent


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "timeouts", "outcome", "events"),
    SILENCES,
    ids=[f"{row[0]}-{row[2]}" for row in SILENCES],
)
async def test_silence_and_endlessness_end_with_the_limit_that_they_passed(
    faulty: Faulty, fault: str, timeouts: Timeouts, outcome: Outcome, events: int
) -> None:
    async with Sender(faulty.url, timeouts) as sender, Sender(faulty.url) as patient:
        async with neighbours(patient):
            record = await sender.one(fault)
        assert (record.outcome, record.events) == (outcome, events)
        assert record.closed - record.sent >= LIMIT
    assert faulty.requests == sender.sent + patient.sent


@pytest.mark.slow
async def test_endless_tokens_end_at_the_timeout_where_many_were_asked_for(faulty: Faulty) -> None:
    """So many that the bound on events is beyond what any client reads in this time."""
    async with Sender(faulty.url, WHOLE) as sender, Sender(faulty.url) as patient:
        sender.prompt = structs.replace(PROMPT, output_tokens=1_000_000_000)
        async with neighbours(patient):
            record = await sender.one("endless")
        assert record.outcome is Outcome.TIMEOUT
        assert record.events > 0
        assert record.closed - record.sent >= LIMIT


@pytest.mark.slow
async def test_endless_tokens_end_at_the_bound_on_events_without_a_timeout(faulty: Faulty) -> None:
    bound = MAX_EVENTS + TOKENS * EVENTS_PER_TOKEN
    async with Sender(faulty.url) as sender:
        record = await sender.one("endless")
        assert record.outcome is Outcome.PROTOCOL_ERROR
        assert record.detail == f"more than {bound} events"
        assert record.events > bound


async def test_a_stream_that_falls_silent_is_told_of_while_it_lasts(
    faulty: Faulty, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loadgen.client.timeouts.SILENCE_NS", S // 10)
    async with Sender(faulty.url) as sender:
        await sender.one()
        sender.start(1, "stall:2")
        await until(lambda: sender.transport.silent)
        assert list(sender.transport.silent) == [1]
        assert 0 < now_ns() - sender.transport.silent[1] < 60 * S
        assert sender.transport.reachability(0).gone is False


async def test_an_error_body_without_end_leaves_the_status_as_the_outcome(faulty: Faulty) -> None:
    async with Sender(faulty.url, FIRST_TOKEN) as sender:
        record = await sender.one("endless-error")
        assert (record.outcome, record.status) == (Outcome.STATUS, 500)
        assert len(record.detail or "") == 1024


@pytest.mark.parametrize(
    ("fault", "content", "reasoning", "other"),
    [("reasoning", TOKENS, 2, 0), ("tool-calls", 0, 0, TOKENS + 1)],
)
async def test_tokens_are_told_apart_by_their_kind(
    faulty: Faulty, fault: str, content: int, reasoning: int, other: int
) -> None:
    async with Sender(faulty.url) as sender:
        record = await sender.one(fault)
        assert (record.content_events, record.reasoning_events, record.other_events) == (
            content,
            reasoning,
            other,
        )


async def test_a_model_may_fail_past_the_end_of_its_answer(faulty: Faulty) -> None:
    async with Sender(faulty.url) as sender:
        sender.target.fields["ignore_eos"] = True
        record = await sender.one("error-after-end")
        assert (record.outcome, record.events) == (Outcome.STREAM_ERROR, TOKENS)


async def test_simultaneous_resets_end_each_request_once(faulty: Faulty) -> None:
    """And 150 are in flight at once, which aiohttp's own default of 100 connections would not
    allow.
    """
    async with Sender(faulty.url) as sender:
        async with neighbours(sender):
            records = await sender.several(150, "rst-together:150")
        assert [(record.outcome, record.events) for record in records] == [
            (Outcome.TRUNCATED, 1)
        ] * 150


async def test_a_mixture_of_faults_is_counted_as_it_was_played(faulty: Faulty) -> None:
    plan = ["eof:2", "status:503", None, "rst:1", "stream-error", None]
    async with Sender(faulty.url) as sender:
        await sender.transport.warm(30)
        waiting = [
            future for number in range(60) for future in sender.start(1, plan[number % len(plan)])
        ]
        outcomes = [(await future).outcome for future in waiting]
        expected = [
            Outcome.TRUNCATED,
            Outcome.STATUS,
            Outcome.OK,
            Outcome.TRUNCATED,
            Outcome.STREAM_ERROR,
            Outcome.OK,
        ]
        assert outcomes == expected * 10
        for record in sender.records:
            if record.outcome is Outcome.OK:
                assert_good(record)


def outcomes() -> dict[str, set[str]]:
    """The outcomes of each fault, by name, as tested above."""
    found: dict[str, set[str]] = {
        "endless": {"protocol_error", "timeout"},
        "endless-error": {"status"},
        "rst-together": {"truncated"},
        "error-after-end": {"stream_error"},  # of a request with ignore_eos
    }
    rows = [(row[0], row[1]) for row in (*FAILURES, *COMPRESSED)]
    rows += [(row[0], row[2]) for row in (*SILENCES, ENDLESS_GZIP)]
    rows += [(name, Outcome.PROTOCOL_ERROR) for name in FAULTS if "gzip" in name]
    rows += [(row[0], Outcome.OK) for row in ODDITIES] + [
        (choice, Outcome.STATUS) for choice in STATUSES
    ]
    for choice, outcome in rows:
        found.setdefault(choice.partition(":")[0], set()).add(str(outcome))
    return found


def test_every_fault_has_a_test() -> None:
    assert outcomes().keys() == FAULTS.keys()


def test_the_page_of_the_test_kit_tells_every_fault_and_its_outcome() -> None:
    page = (ROOT / "docs" / "testing.md").read_text()
    fault = r"`([a-z0-9-]+)(?::(\d+))?`"
    told = re.findall(rf"^- {fault}: (.+?)\s+\*([a-z_, ]+)\*$", page, re.MULTILINE | re.DOTALL)
    assert {
        name: (number, " ".join(does.split()), set(ends.split(", ")))
        for name, number, does, ends in told
    } == {
        name: ("" if fault.default is None else str(fault.default), fault.does, outcomes()[name])
        for name, fault in FAULTS.items()
    }
