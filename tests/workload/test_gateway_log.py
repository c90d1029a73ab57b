"""The log of a gateway becomes the rows of a trace; what is no request is counted."""

import json

import pytest

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.workload.datasets.gateway_log import GatewayLog, unchanged

CHAT = [{"role": "user", "content": "Hello"}]
BODY = {"messages": CHAT, "temperature": 0.5}
S, MS, US = 1_700_000_000, 1_700_000_000_000, 1_700_000_000_000_000


@pytest.fixture
def read(tmp_path):
    def of(*lines, **changes):
        path = tmp_path / "log"
        texts = (line if isinstance(line, str) else json.dumps(line) for line in lines)
        path.write_text("".join(f"{text}\n" for text in texts))
        changes = {"backend": "openai-chat"} | changes
        settings = RunSettings(dataset_name="trace", **changes)
        log = GatewayLog(path, settings, unchanged)
        return log, [json.loads(row) for row in log.rows()]

    return of


def test_rows_are_in_the_order_of_their_times_from_the_first(read):
    _, rows = read({"timestamp": S + 2.5, "body": BODY}, {"timestamp": S, "body": BODY})
    assert rows == [
        {"timestamp": 0, "id": "line/2", "body": BODY},
        {"timestamp": 2500, "id": "line/1", "body": BODY},
    ]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (S, S + 1),
        (MS, MS + 1000),
        (US, US + 1_000_000),
        (str(S), str(S + 1)),
        ("2026-11-30T10:00:00Z", "2026-11-30T12:00:01+02:00"),
        ("2026-11-30 10:00:00.250", "2026-11-30 10:00:01.250"),
    ],
)
def test_unit_of_a_time_is_that_in_which_it_is_a_date(read, first, second):
    _, rows = read({"time": first, "body": BODY}, {"time": second, "body": BODY})
    assert [row["timestamp"] for row in rows] == [0, 1000]


@pytest.mark.parametrize(
    "line",
    [
        {"request": BODY},
        {"request_body": json.dumps(BODY)},
        {"messages": CHAT, "model_parameters": {"temperature": 0.5}},
    ],
)
def test_body_is_found_under_the_names_of_gateways(read, line):
    _, rows = read({"ts": S} | line)
    body = rows[0]["body"]
    assert (body["messages"], body["temperature"]) == (CHAT, 0.5)


@pytest.mark.parametrize(
    "line",
    [
        {"completion_tokens": 9},
        {"usage": {"completion_tokens": 9}},
        {"response": {"usage": {"output_tokens": 9}}},
        {"response_body": json.dumps({"usage": {"completion_tokens": 9}})},
    ],
)
def test_length_of_the_answer_is_kept(read, line):
    _, rows = read({"ts": S, "body": BODY} | line)
    assert rows[0]["output_tokens"] == 9


def test_lines_that_are_no_requests_are_counted_by_reason(read):
    log, rows = read(
        {"ts": S, "body": BODY},
        "GET /health 200",
        {"ts": S},
        {"ts": S, "body": {"input": "a text"}},
        {"ts": "yesterday", "body": BODY},
        {"body": BODY},
    )
    assert (log.lines, log.count, len(rows)) == (6, 1, 1)
    assert log.left_out == {
        "no JSON object": 1,
        "no body": 1,
        "a body without messages": 1,
        "no time": 2,
    }


@pytest.mark.parametrize("time", [0, -5, "0001-01-01T00:00:00Z", "1970-01-01T00:00:00Z"])
def test_times_of_unset_fields_are_left_out(read, time):
    log, rows = read(*({"ts": at, "body": BODY} for at in (S, time, S + 1)))
    assert [row["timestamp"] for row in rows] == [0, 1000]
    assert (log.count, log.left_out) == (2, {"a time before 2001": 1})


def test_times_that_are_no_dates_need_their_unit(read):
    lines = [{"timestamp": at, "body": BODY} for at in (0, 1200)]
    with pytest.raises(BadInput, match="no dates, so their unit is unknown; give it in seconds"):
        read(*lines)
    _, rows = read(*lines, trace_time_unit=0.001)
    assert [row["timestamp"] for row in rows] == [0, 1200]


def test_other_names_are_given_as_columns(read):
    settings = {"trace_column": ("time=at", "body=asked"), "trace_time_unit": 1.0}
    _, rows = read({"at": 1, "asked": BODY}, {"at": 3, "asked": BODY}, **settings)
    assert [row["timestamp"] for row in rows] == [0, 2000]


def test_log_of_another_api_is_refused_with_the_flag_that_names_it(read):
    with pytest.raises(BadInput, match=r"a body without messages in 1 of 1 lines; give .*backend"):
        read({"ts": S, "body": {"prompt": "Once"}})


def test_an_api_without_bodies_is_refused_as_a_run_refuses_it(read):
    line = {"ts": S, "body": {"prompt": "Once"}}
    with pytest.raises(BadInput, match="recorded bodies are not sent to /v1/embeddings; use"):
        read(line, backend="openai-embeddings")


def test_a_file_without_json_lines_is_refused_with_its_form(read):
    with pytest.raises(BadInput, match="no JSON object in 2 of 2 lines; give a log with a JSON"):
        read("[", "]")


def test_log_without_a_request_is_refused_with_the_reason(read):
    with pytest.raises(BadInput, match="no request: no time in 2 of 2 lines; name its fields"):
        read({"at": S, "body": BODY}, {"at": S, "body": BODY})


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"messages": "oops"}, "a body that has messages that are not a list, or empty"),
        ({"messages": [1]}, "a body that has a message that is not an object with a role"),
        (
            BODY | {"n": 2},
            "a body that cannot be sent (n: 2 requests several answers to a prompt)",
        ),
    ],
)
def test_bodies_that_a_run_would_refuse_are_left_out(read, body, reason):
    log, rows = read({"ts": S, "body": BODY}, {"ts": S, "body": body})
    assert (log.count, len(rows)) == (1, 1)
    assert log.left_out == {reason: 1}
    with pytest.raises(BadInput, match="has no request"):
        read({"ts": S, "body": body})
