"""Random responses: the compiled reader and the reference agree on the same bytes, with any
cuts.

Of typical responses, `make test-all` cuts every second, and `make qa` the others.
"""

import os
from bisect import bisect_right
from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadgen.core import event_flags
from loadgen.core.dialect import Dialect
from loadgen.core.dialect_scan import DialectScanner
from loadgen.core.http1 import Response
from loadgen.core.outcome import Outcome
from loadgen.core.record import Record
from tests.helpers import captured_responses, dialect_events, response_grammar
from tests.helpers.response_bytes import DONE, HEAD, answer, chunked, delta, event, streamed, usage
from tests.helpers.stream_events import events
from tests.helpers.thinning import every_nth
from tests.helpers.wire_facts import Facts
from tests.helpers.wire_reference import read

EXAMPLES = int(os.environ.get("LOADGEN_FUZZ_EXAMPLES", "300"))
fuzzed = settings(max_examples=EXAMPLES, deadline=None)
MS = 1_000_000
WITHOUT = event_flags.CONTENT | event_flags.SILENT
# Whose detail is the server's, or is defined.
WORDED = (Outcome.STATUS, Outcome.STREAM_ERROR, Outcome.TRUNCATED)


def compare(
    wire: bytes, cuts: Iterable[int], end: str | None, dialect: Dialect | None = None
) -> Facts:
    """Feed `wire` in slices, the n-th of which arrives at n ms, then end the connection; hold it
    to the reference.
    """
    edges = sorted({0, *(cut for cut in cuts if cut < len(wire)), len(wire)})
    response, record = Response(dialect and DialectScanner(dialect)), Record(due=1)
    response.begin(record)
    for number, (start, stop) in enumerate(pairwise(edges), 1):
        response.feed(wire[start:stop], number * MS)
    told = read(wire, end, dialect)
    if end is not None and not response.complete:
        response.eof(len(edges) * MS, end or None)

    def stamp(offset: int) -> int:
        return bisect_right(edges, offset) * MS

    assert record.outcome == told.outcome, record.detail
    assert response.complete == (told.outcome is not None)
    assert record.status == told.status
    assert record.finish_reason == told.finish_reason
    assert record.prompt_tokens == told.prompt_tokens
    assert record.completion_tokens == told.completion_tokens
    assert record.cached_tokens == told.cached_tokens
    assert record.reasoning_tokens == told.reasoning_tokens
    assert record.matched_stop == told.matched_stop
    assert record.server_times == told.times
    assert record.nan_events == told.nan_events
    assert record.done_seen == told.done_seen
    if told.outcome is None:
        record.end(Outcome.CANCELLED, None, 0)  # forgets events that may have borne a token
    assert record.stamps == [stamp(at) for at in told.stamps]
    assert events(record) == [(says, stamp(at)) for says, at in told.stream]
    content = [
        at for at, kinds in zip(told.stamps, told.kinds, strict=True) if kinds & event_flags.CONTENT
    ]
    others = [kinds for kinds in told.kinds if not kinds & WITHOUT]
    assert record.content_events == len(content)
    assert record.reasoning_events == sum(bool(kinds & event_flags.REASONING) for kinds in others)
    assert record.other_events == sum(not kinds & event_flags.REASONING for kinds in others)
    assert record.silent_events == told.kinds.count(event_flags.SILENT)
    assert record.total_tokens == told.total_tokens
    assert record.unread == (told.unread or None)
    assert (record.token_counts or [1] * record.events) == told.tokens
    assert (record.counted, record.counted_by) == (sum(told.tokens), told.counted_by)
    assert record.reads == len({stamp(at) for at in told.stamps})
    assert record.first_byte == (MS if wire else 0)
    assert record.first_token == (stamp(told.stamps[0]) if told.stamps else 0)
    assert record.first_answer == (stamp(content[0]) if content else 0)
    assert record.last_token == (stamp(told.stamps[-1]) if told.stamps else 0)
    if told.outcome is not None:
        assert record.closed == stamp(told.closed)
        assert response.keep_alive == told.keep_alive
        if told.keep_alive:
            assert response.keep_alive_ns == told.rest_s * 10**9
    if told.outcome in WORDED and told.detail is not None:
        assert record.detail == told.detail
    return told


endings = st.sampled_from([None, None, "", "", "Connection reset by peer"])
cuttings = st.one_of(
    st.just(()), st.lists(st.integers(1, 2000), max_size=10), st.just(range(1, 3000))
)


@pytest.mark.integration
@fuzzed
@given(wire=response_grammar.responses(), cuts=cuttings, end=endings)
def test_fuzz_responses_match_the_reference(
    wire: bytes, cuts: Iterable[int], end: str | None
) -> None:
    compare(wire, cuts, end)


@pytest.mark.integration
@fuzzed
@given(wire=response_grammar.mutated(response_grammar.responses()), cuts=cuttings, end=endings)
def test_fuzz_damaged_responses_match_the_reference(
    wire: bytes, cuts: Iterable[int], end: str | None
) -> None:
    compare(wire, cuts, end)


@pytest.mark.integration
@fuzzed
@given(payload=response_grammar.mutated(response_grammar.payloads()))
def test_fuzz_damaged_events_match_the_reference(payload: bytes) -> None:
    lines = b"".join(b"data: " + line + b"\n" for line in payload.split(b"\n")) + b"\n"
    compare(streamed(delta(content="a") + lines + delta("stop"), 10_000), [], "")


@pytest.mark.integration
@pytest.mark.parametrize("name", dialect_events.DIALECTS)
@fuzzed
@given(data=st.data(), cuts=cuttings, end=endings)
def test_fuzz_responses_in_a_dialect_match_the_reference(
    data: st.DataObject, name: str, cuts: Iterable[int], end: str | None
) -> None:
    dialect = dialect_events.DIALECTS[name]
    responses = response_grammar.responses(dialect_events.chunks(dialect))
    compare(
        data.draw(st.one_of(responses, response_grammar.mutated(responses))), cuts, end, dialect
    )


@pytest.mark.integration
@fuzzed
@given(noise=st.binary(max_size=300), cuts=cuttings)
def test_fuzz_noise_matches_the_reference(noise: bytes, cuts: Iterable[int]) -> None:
    compare(noise, cuts, "")
    compare(HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunked(noise + b"\n\n", 64), cuts, "")


BODY = (
    delta(role="assistant", content="")
    + delta(reasoning="hm")
    + answer("é", "\n").removesuffix(DONE)
    + usage(prompt_tokens=7, completion_tokens=3, prompt_tokens_details={"cached_tokens": 4})
)
TYPICAL = {
    "chunked": streamed(BODY + DONE, 90),
    "length": HEAD + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY,
    "until close": HEAD + b"Connection: close\r\n\r\n" + BODY.replace(b"\n", b"\r\n"),
    "interim": b"HTTP/1.1 100 Continue\r\n\r\n" + streamed(BODY, 1000),
    "error in the stream": streamed(delta(content="a") + event(error={"message": "no"}) + DONE, 50),
    "status": b"HTTP/1.1 503 No\r\nContent-Type: application/json\r\nContent-Length: "
    b'15\r\n\r\n{"error": "no"}',
    "in one piece": b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "
    b'14\r\n\r\n{"choices":[]}',
    **{
        f"captured {number}": streamed(
            b"\n\n".join(seed.split(b"\n\n")[:2] + seed.split(b"\n\n")[-4:]), 500
        )
        for number, seed in enumerate(response_grammar.SEEDS)
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("name", every_nth([*TYPICAL], step=2))
def test_response_cut_off_anywhere_matches_the_reference(name: str) -> None:
    wire = TYPICAL[name]
    for length in range(len(wire) + 1):
        for end in (None, "", "Connection reset by peer"):
            compare(wire[:length], [length // 2], end)


@pytest.mark.slow
@pytest.mark.parametrize("name", dialect_events.ANSWERS)
def test_response_in_a_dialect_cut_anywhere_matches_the_reference(name: str) -> None:
    wire, dialect = streamed(dialect_events.ANSWERS[name], 90), dialect_events.DIALECTS[name]
    assert compare(wire, list(range(len(wire))), "", dialect).outcome is Outcome.OK
    for length in range(len(wire) + 1):
        for end in (None, "", "Connection reset by peer"):
            compare(wire[:length], [length // 2], end, dialect)


@pytest.mark.slow
@pytest.mark.parametrize("name", every_nth([*TYPICAL], step=2))
def test_response_in_slices_matches_the_reference(name: str) -> None:
    wire = TYPICAL[name]
    assert compare(wire, list(range(len(wire))), "").outcome is not None
    for cut in range(1, len(wire)):
        compare(wire, [cut], "")


@pytest.mark.parametrize("golden", captured_responses.goldens(), ids=lambda golden: golden.name)
def test_captured_responses_match_the_reference(golden: captured_responses.Golden) -> None:
    for step in (997, 4096, len(golden.wire)):
        assert compare(golden.wire, range(step, len(golden.wire), step), "").outcome is not None
