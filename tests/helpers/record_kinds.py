"""Records of each kind, and their lines."""

import orjson

from loadgen.core.outcome import Outcome
from loadgen.core.record_json import record_line
from tests.helpers.response_bytes import delta
from tests.helpers.run_facts import (
    CHUNKED,
    LAST_CHUNK,
    MS,
    answered,
    chunk,
    failed,
    planned,
    read,
    unsent,
)


def told(record, start_ns, source=None):
    """The JSON form of a record, read again."""
    record.source = source
    return orjson.loads(record_line(record, start_ns))


def spoken(content, *, keeps_answer=True):
    """A record whose answer is this, as the inside of a JSON string."""
    record = planned()
    record.keeps_answer = keeps_answer
    words = (
        delta(reasoning="hm")
        + b'data: {"choices":[{"index":0,"delta":{"content":"%b"}}]}\n\n' % content
    )
    return read(record, CHUNKED + chunk(words + delta("stop")) + LAST_CHUNK)


def sent_to(target, record):
    record.target = target
    return record


def predicted(record, tokens):
    record.server_tokens = tokens
    return record


def leaving(record, *, tokens=0, after_ns=-1):
    record.end_after_tokens, record.end_after_ns = tokens, after_ns
    return record


def sent_again(record):
    record.attempts, record.retried_ns, record.first_status = 3, 900 * MS, 429
    record.first_sent, record.first_closed = record.due + MS, record.due + 4 * MS
    return record


def told_of(record):
    """A record of a server and a connection that told of themselves."""
    record.add_times({"by": "vllm", "queue": MS})
    record.connect_parts = {"dns": 0, "tcp": 3, "tls": 0}
    record.tcp_info = (40, 50, 0, 1)
    return record


RECORDS = [
    leaving(answered(0), tokens=10),
    leaving(failed(0, Outcome.DISCONNECTED), after_ns=0),
    sent_again(answered(0, due=5, ready=7)),
    predicted(answered(0), 18),
    sent_to(3, answered(0)),
    told_of(answered(0)),
    answered(0, tokens=[20, 30], reasoning=[10]),
    answered(
        1,
        due=5,
        tools=[30],
        ready=7,
        connect=1,
        counts={"completion_tokens": 4, "prompt_tokens": 9},
    ),
    read(planned(2), CHUNKED + chunk(delta("stop", content="a b", token_ids=[1, 2])) + LAST_CHUNK),
    unsent(3),
    *(
        failed(4 + n, outcome)
        for n, outcome in enumerate(o for o in Outcome if o is not Outcome.OK)
    ),
]
