"""Rows of a trace that have bodies are sent as they are, at their times."""

import json

import pytest

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.workload import datasets
from loadgen.workload.prefix_cache.cache_block import CacheBlock
from loadgen.workload.prefix_cache.cache_plan import CachePlan
from loadgen.workload.prompt import Timed
from loadgen.workload.request_store import Requests
from loadgen.workload.target import Target

MS = 1_000_000
CHAT = [{"role": "user", "content": "Hello"}]
TOOL = {"type": "function", "function": {"name": "look_up", "parameters": {}}}


@pytest.fixture
def given(tmp_path):
    def of(*rows, **changes):
        path = tmp_path / "requests.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        values = {"backend": "openai-chat", "model": "m", "tokenizer": "none"} | changes
        return RunSettings(dataset_name="trace", dataset_path=str(path), **values)

    return of


def prompts(settings):
    dataset = datasets.create(settings)
    return list(dataset.prompts(dataset.requests))


def sent(settings):
    """The bodies that a server gets."""
    target = Target.from_settings(settings, settings.model)
    return [json.loads(target.body(prompt)) for prompt in prompts(settings)]


def row(at_ms, **body):
    return {"timestamp": at_ms, "body": {"messages": CHAT} | body}


def test_body_is_sent_as_recorded_with_tools_and_unknown_fields(given):
    body = {"tools": [TOOL], "max_tokens": 7, "user": "a", "vendor": {"x": [1]}}
    (actual,) = sent(given(row(0, **body)))
    usage = {"stream_options": {"include_usage": True}}
    assert actual == {"model": "m", "messages": CHAT, "stream": True} | usage | body


def test_no_maximum_is_added_to_a_body_without_one(given):
    (actual,) = sent(given(row(0)))
    assert actual.keys() == {"model", "messages", "stream", "stream_options"}


def test_maximum_of_a_body_is_its_planned_length(given):
    rows = (row(0, max_tokens=7), row(1, max_completion_tokens=8), row(2) | {"output_tokens": 9})
    assert [prompt.output_tokens for prompt in prompts(given(*rows, row(3)))] == [7, 8, 9, 256]


def test_fields_of_the_run_yield_to_those_of_a_body(given):
    rows = (row(0, temperature=0.2), row(1))
    bodies = sent(given(*rows, temperature=0.9, ignore_eos=True))
    assert [(body["temperature"], body["ignore_eos"]) for body in bodies] == [
        (0.2, True),
        (0.9, True),
    ]


def test_model_and_stream_are_the_runs_and_each_replacement_is_counted(given):
    settings = given(row(0, model="other", stream=False), row(1, model="m", stream=True))
    assert [(body["model"], body["stream"]) for body in sent(settings)] == [("m", True)] * 2
    dataset = datasets.create(settings)
    list(dataset.prompts(2))
    assert dataset.provenance()["replaced"] == {"model": 1, "stream": 1}
    list(dataset.prompts(2))
    assert dataset.provenance()["replaced"] == {"model": 1, "stream": 1}


def test_completions_have_a_prompt(given):
    settings = given({"timestamp": 5, "body": {"prompt": "Once", "stop": ["\n"]}}, backend="openai")
    (actual,) = sent(settings)
    assert (actual["prompt"], actual["stop"], "max_tokens" in actual) == ("Once", ["\n"], False)


def test_requests_are_due_at_their_times_from_the_first_in_any_order(given):
    settings = given(row(1500.25), row(1000), row(3000), time_scale=2)
    assert [prompt.due_ns for prompt in prompts(settings)] == [0, 250_125_000, 1000 * MS]
    assert [prompt.source for prompt in prompts(settings)] == ["jsonl/2", "jsonl/1", "jsonl/3"]


def test_duration_takes_the_rows_within_it(given):
    settings = given(row(0), row(999), row(1000), duration=1)
    dataset = datasets.create(settings)
    assert isinstance(dataset, Timed)
    assert dataset.requests == 2


def test_times_may_be_in_another_column_and_unit(given):
    rows = ({"at": 10, "body": {"messages": CHAT}}, {"at": 12.5, "body": {"messages": CHAT}})
    settings = given(*rows, trace_column=("time=at",), trace_time_unit=1.0)
    assert [prompt.due_ns for prompt in prompts(settings)] == [0, 2500 * MS]


def test_rows_without_times_are_sent_at_the_runs_rate(given):
    settings = given({"body": {"messages": CHAT}}, trace_times="ignore", request_rate=2)
    assert [prompt.due_ns for prompt in prompts(settings)] == [None]


def test_warm_up_of_a_cache_asks_for_one_token(given, tmp_path):
    settings = given(row(0, max_tokens=7), cache="warm")
    target = Target.from_settings(settings, "m")
    plan = CachePlan("warm", tmp_path, target, None, CacheBlock(), ())
    with plan:
        list(plan.watch(prompts(settings), further=False))
    with Requests(tmp_path, "warm-cache-") as requests:
        body = json.loads(requests.body(0))
    assert (body["max_completion_tokens"], "max_tokens" in body) == (1, False)


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        ({"body": {"messages": CHAT}}, "row 2 has no timestamp, which is no time"),
        (row("soon"), "row 2 has 'soon' timestamp, which is no time"),
        ({"timestamp": 1, "body": "text"}, "row 2 has no body that is an object"),
        ({"timestamp": 1, "body": {"prompt": "a"}}, "row 2 has a body without messages, which"),
        ({"timestamp": 1, "body": {"prompt": "a"}}, "backend names the API of the bodies"),
        (row(1) | {"lenght": 3}, "row 2 has an unknown field 'lenght'"),
        (row(True), "row 2 has True timestamp, which is no time"),
        (row(1, n=2), "jsonl: row 2: n: 2 requests several answers to a prompt; leave it out"),
        (row(1, max_tokens=0), "row 2 has max_tokens 0"),
        (row(1, max_completion_tokens="5"), "row 2 has max_completion_tokens '5'"),
    ],
)
def test_row_that_cannot_be_sent_is_named(given, bad, problem):
    with pytest.raises(BadInput, match=problem):
        prompts(given(row(0), bad))


def test_bodies_are_refused_where_the_api_has_other_prompts(given):
    with pytest.raises(BadInput, match="recorded bodies are not sent to /v1/responses"):
        prompts(given(row(0), backend="openai-responses"))


def test_jsonl_with_times_names_the_data_set_that_sends_them(given):
    settings = given({"timestamp": 0, "prompt": "a"}).replace(dataset_name="jsonl")
    dataset = datasets.create(settings)
    with pytest.raises(BadInput, match=r"has a timestamp, and no body; .*dataset.name trace"):
        list(dataset.prompts(1))
