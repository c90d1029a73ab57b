"""What servers say of the time that they spent on a request.

That the compiled reader and the parser in Python agree is fuzzed in `test_wire_fuzz`.
"""

from typing import Any

import orjson
import pytest

from loadgen.core import server_times
from loadgen.core.http1 import Response
from loadgen.core.record import Record
from loadgen.core.server_times import Times, in_event, in_head
from loadgen.core.server_times_scan import PLACES
from tests.helpers.captured_responses import goldens
from tests.helpers.run_facts import MS, answered, measured

TOKEN = {"id": "a", "choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": None}]}
END = {"id": "a", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
USAGE = {"prompt_tokens": 3, "completion_tokens": 1}
US = 1000


def said(*events: dict[str, Any], head: bytes = b"") -> Times | None:
    """What the record has of an answer with these events."""
    record, response = Record(), Response()
    response.begin(record)
    body = b"".join(b"data: " + orjson.dumps(event) + b"\n\n" for event in events)
    fields = b"content-type: text/event-stream\r\n" + head + b"connection: close\r\n\r\n"
    response.feed(b"HTTP/1.1 200 OK\r\n" + fields + body + b"data: [DONE]\n\n", 5)
    response.eof(9)
    return record.server_times


@pytest.mark.parametrize(
    ("events", "times"),
    [
        (
            [
                END,
                {
                    "choices": [],
                    "usage": USAGE,
                    "metrics": {
                        "queue_time_ms": 1.5,
                        "time_to_first_token_ms": 2.25,
                        "generation_time_ms": 30,
                        "mean_itl_ms": None,
                    },
                },
            ],
            {"by": "vllm", "queue": 1500 * US, "prefill": 2250 * US, "decode": 30_000 * US},
        ),
        (
            [END | {"timings": {"prompt_n": 3, "prompt_ms": 85.123, "predicted_ms": 1}}],
            {"by": "llamacpp", "prefill": 85_123 * US, "decode": 1000 * US},
        ),
        (
            [
                {
                    "text": "a",
                    "meta_info": {
                        "completion_tokens": 1,
                        "finish_reason": {"type": "stop"},
                        "request_received_ts": 1.5e9,
                        "api_server_dispatch_finish_ts": 1.5e9 + 0.25,
                        "queue_time": 0.5,
                        "forward_entry_time": 2000.25,
                        "prefill_finished_time": 2000.5,
                        "e2e_latency": 2,
                    },
                }
            ],
            {
                "by": "sglang",
                "front": round((1.5e9 + 0.25) * 1e9)
                - 1_500_000_000_000_000_000,  # Unix s are floats
                "queue": 500_000 * US,
                "prefill": 250_000 * US,
                "total": 2_000_000 * US,
            },
        ),
        (
            [END, {"choices": [], "usage": USAGE, "stats": {"time_in_queue_in_ms": 10.0}}],
            {"by": "nim", "queue": 10_000 * US},
        ),
        (
            [END | {"time_info": {"queue_time": 0.001, "completion_time": 0.1}}],
            {"by": "cerebras", "queue": 1000 * US, "decode": 100_000 * US},
        ),
        (
            [END, {"choices": [], "usage": USAGE | {"queue_time": 0.01, "prompt_time": 0.2}}],
            {"by": "groq", "queue": 10_000 * US, "prefill": 200_000 * US},
        ),
        (
            [END | {"x_groq": {"id": "a", "usage": USAGE | {"queue_time": 0.5}}}],
            {"by": "groq", "queue": 500_000 * US},
        ),
        (
            [END, {"choices": [], "usage": USAGE | {"timing_prompt_processing": 7}}],
            {"by": "localai", "prefill": 7000 * US},
        ),
        ([END, {"choices": [], "usage": USAGE}], None),
    ],
)
def test_table_reads_each_server(events: list[dict[str, Any]], times: Times | None) -> None:
    assert said(TOKEN, *events) == times


def test_captures_of_real_servers_have_their_times() -> None:
    captured = {golden.name: golden for golden in goldens()}

    def times(name: str) -> Times | None:
        golden = captured[name]
        record, response = golden.asked, Response()
        response.begin(record)
        response.feed(golden.wire, 1)
        return record.server_times

    by = "llamacpp"
    assert times("llamacpp_chat-0") == {"by": by, "prefill": 258_214 * US, "decode": 123_828 * US}
    whole = {"by": by, "prefill": 22_208 * US, "decode": 552_215 * US}
    assert times("llamacpp_chat_whole-0") == whole
    assert times("vllm_chat_reasoning-0") is None, "the server was not asked for them"


def test_only_the_event_that_ends_the_answer_is_read() -> None:
    """llama.cpp may say times so far with each token: they are not those of the answer."""
    timings = {"timings": {"prompt_ms": 5}}
    assert said(TOKEN | timings, END) is None
    assert said(TOKEN | timings, END | {"timings": {"prompt_ms": 7}}) == {
        "by": "llamacpp",
        "prefill": 7000 * US,
    }


@pytest.mark.parametrize("value", [None, -1, "1", True, [1], 1e13, {"ms": 1}])
def test_what_is_no_time_is_not_said(value: Any) -> None:
    metrics = {"queue_time_ms": value, "time_to_first_token_ms": 2}
    assert said(TOKEN, END | {"metrics": metrics}) == {"by": "vllm", "prefill": 2000 * US}
    assert said(TOKEN, END | {"metrics": {"queue_time_ms": value}}) is None
    assert said(TOKEN, END | {"metrics": value}) is None


def test_quantity_with_one_end_or_with_its_ends_in_the_wrong_order_is_not_said() -> None:
    begin, end = {"forward_entry_time": 5.0}, {"prefill_finished_time": 4.0}
    for times in (begin, end, begin | end):
        assert in_event({"meta_info": times}, None) is None
    assert in_event({"meta_info": begin | {"prefill_finished_time": 6.0}}, None) == {
        "by": "sglang",
        "prefill": 1_000_000 * US,
    }


@pytest.mark.parametrize(
    ("fields", "times"),
    [
        (
            b"X-Envoy-Upstream-Service-Time: 12\r\n",
            {"by": "envoy", "headers": 12_000 * US},
        ),
        (b"openai-processing-ms: 7\r\n", {"by": "openai", "headers": 7000 * US}),
        (b"openai-processing-ms: \r\n", None),
        (b"x-response-time: 5\r\n", None),
        (
            b"x-queue-time: 3\r\nx-validation-time: 1\r\nx-total-time: 9\r\n",
            {"by": "tgi", "queue": 3000 * US, "front": 1000 * US, "total": 9000 * US},
        ),
        (
            b'server-timing: db;dur=2, queue;desc="q";dur=1.5,total;dur=9, prefill\r\n',
            {"by": "server-timing", "queue": 1500 * US, "total": 9000 * US},
        ),
    ],
)
def test_heads_are_read(fields: bytes, times: Times | None) -> None:
    assert in_head(b"HTTP/1.1 200 OK\r\n" + fields) == times
    assert said(TOKEN, END, head=fields) == times


def test_head_and_events_are_joined_and_the_events_name_the_server() -> None:
    metrics = {"metrics": {"queue_time_ms": 1}}
    assert said(TOKEN, END | metrics, head=b"x-envoy-upstream-service-time: 2\r\n") == {
        "by": "vllm",
        "queue": 1000 * US,
        "headers": 2000 * US,
    }


@pytest.mark.parametrize(
    ("times", "overlong"),
    [
        ({"front": 20, "queue": 50, "prefill": 31}, 0),
        ({"front": 20, "queue": 50, "prefill": 32}, 1),
        ({"queue": 60, "prefill": 30, "decode": 211}, 0),
        ({"queue": 60, "prefill": 30, "decode": 212}, 1),
        ({"decode": 302}, 1),
        ({"total": 301}, 0),
        ({"total": 302}, 1),
        ({"headers": 51}, 0),
        ({"headers": 52}, 1),
    ],
)
def test_server_that_says_more_than_passed_is_counted(times: dict[str, int], overlong: int) -> None:
    """The first byte came 50 ms after the request was sent, the first token 100, the end 300; a
    server may round to whole milliseconds.
    """
    record = answered(due=0, sent=0, tokens=[100, 300])
    record.first_byte = record.sent + 50 * MS
    record.add_times({"by": "vllm", **{name: ms * MS for name, ms in times.items()}})
    assert measured([record]).counters["overlong_times"] == overlong


def test_table_names_each_quantity_once_a_member_and_fits_the_compiled_reader() -> None:
    assert {saying.where for saying in server_times.SAYINGS} == set(PLACES)
    for saying in server_times.SAYINGS:
        ends = list(saying.keys.values())
        assert len(set(ends)) == len(ends) <= 32
        assert {end.removeprefix(server_times.BEGINS) for end in ends} <= {*server_times.QUANTITIES}
