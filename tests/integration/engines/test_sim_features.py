"""Optional features of the simulator: events, caches, engine cores and its reported settings."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from loadgen.engines import Server
from tests.helpers.raw_client import FAST, Client, gauge
from tests.helpers.sim_server import simulated

CHAT = "/v1/chat/completions"
COUNTED = {"include_usage": True, "continuous_usage_stats": True}


def ask(client: Client, text: str, **body: Any) -> list[dict[str, Any]]:
    """The events of a streamed chat but for [DONE]."""
    messages = [{"role": "user", "content": text}]
    return client.post(CHAT, messages=messages, ignore_eos=True, stream=True, **body).events[:-1]


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with simulated(**{**FAST, **request.param}) as server:
        yield server


def with_flags(**flags: object) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("server", [flags], indirect=True)


@with_flags()
def test_every_event_says_the_counts_so_far_when_asked_to(client: Client) -> None:
    role, *told, usage = ask(client, "one two", max_tokens=12, stream_options=COUNTED)
    assert role["usage"] == {"prompt_tokens": 2, "total_tokens": 2, "completion_tokens": 0}
    assert [event["usage"]["completion_tokens"] for event in told] == list(range(1, 13))
    assert [event["usage"]["total_tokens"] for event in told] == list(range(3, 15))
    assert {event["usage"]["prompt_tokens"] for event in told} == {2}
    assert (
        told[-1]["usage"]
        == usage["usage"]
        == {"prompt_tokens": 2, "total_tokens": 14, "completion_tokens": 12}
    )
    assert usage["choices"] == []


@with_flags(image_tokens=100)
def test_an_image_counts_as_tokens_of_the_prompt(client: Client) -> None:
    parts = [
        {"type": "text", "text": "one two"},
        *[{"type": "image_url", "image_url": {"url": "data:x"}}] * 2,
    ]
    answer = client.post(CHAT, messages=[{"role": "user", "content": parts}], max_tokens=1)
    assert answer.json["usage"]["prompt_tokens"] == 202
    bad = client.post(
        CHAT, messages=[{"content": [{"type": "image_url", "image_url": {}}]}], max_tokens=1
    )
    assert (bad.status, bad.json["error"]["param"]) == (400, "messages")


@with_flags(lora_modules="sql,chat")
def test_requests_may_name_an_adapter(client: Client) -> None:
    rows = client.request("GET", "/v1/models").json["data"]
    served = rows[0]["id"]
    assert [(row["id"], row["parent"]) for row in rows[1:]] == [("sql", served), ("chat", served)]
    statuses = [
        client.post(CHAT, model=name, messages=[{"content": "a"}], max_tokens=1).status
        for name in ("sql", "other")
    ]
    assert statuses == [200, 404]
    native = client.post(
        "/generate", text="a", lora_path="other", sampling_params={"max_new_tokens": 1}
    )
    assert native.status == 404


@with_flags()
def test_a_priority_is_refused_without_its_policy(client: Client) -> None:
    statuses = [
        client.post(CHAT, messages=[{"content": "a"}], max_tokens=1, priority=number).status
        for number in (0, 1)
    ]
    assert statuses == [200, 400]


@with_flags(scheduling_policy="priority")
def test_a_priority_is_an_integer(client: Client) -> None:
    statuses = [
        client.post(CHAT, messages=[{"content": "a"}], max_tokens=1, priority=number).status
        for number in (-3, "high")
    ]
    assert statuses == [200, 400]


@with_flags(tokens_per_event=5, reasoning_tokens=7)
def test_several_tokens_come_in_one_event(client: Client) -> None:
    whole = client.post(
        CHAT, messages=[{"content": "a"}], ignore_eos=True, max_tokens=20, seed=3
    ).json
    _, *told, usage = ask(client, "a", max_tokens=20, seed=3, stream_options=COUNTED)
    deltas = [event["choices"][0]["delta"] for event in told]
    assert ["reasoning" in delta for delta in deltas] == [True, True, False, False, False]
    assert [event["usage"]["completion_tokens"] for event in told] == [5, 7, 12, 17, 20]
    message = whole["choices"][0]["message"]
    assert "".join(delta.get("reasoning", "") for delta in deltas) == message["reasoning"]
    assert "".join(delta.get("content", "") for delta in deltas) == message["content"]
    assert usage["usage"] == whole["usage"]


@with_flags(enable_prefix_caching=True, chat_template_tokens=3)
def test_cached_prefix_shows_in_usage_and_metrics_until_flush(
    client: Client, server: Server
) -> None:
    def cached(text: str) -> int:
        *_, usage = ask(client, text, max_tokens=1, stream_options={"include_usage": True})
        return int(usage["usage"]["prompt_tokens_details"]["cached_tokens"])

    first = " ".join(["word"] * 110)
    assert cached(first) == 0
    assert cached(first) == 112  # of 113 with the template
    assert cached(first + " and more") == 112
    assert cached("other " + first) == 0
    assert gauge(client, "vllm:prefix_cache_hits_total") == 2 * 112
    assert gauge(client, "vllm:prefix_cache_queries_total") == 2 * 113 + 115 + 114
    assert gauge(client, "vllm:kv_cache_usage_perc") == 0
    server.flush()
    assert cached(first) == 0


@with_flags(enable_prefix_caching=True)
def test_prompts_of_ids_are_known_too(client: Client) -> None:
    ids = list(range(100))
    for cached in (0, 96):
        usage = client.post("/v1/completions", prompt=ids, max_tokens=1).json["usage"]
        assert usage["prompt_tokens_details"] == {"cached_tokens": cached}


@with_flags()
def test_usage_has_no_cache_details_without_a_cache(client: Client) -> None:
    assert (
        "prompt_tokens_details" not in client.post(CHAT, messages=[{"content": "a"}]).json["usage"]
    )


@with_flags(data_parallel_size=2, max_num_seqs=1, step_base_ms=20.0)
def test_requests_go_to_the_engine_core_that_has_fewest(client: Client, server: Server) -> None:
    others = [Client(server.base_url) for _ in range(2)]
    body = {"messages": [{"content": "a"}], "max_tokens": 1000, "ignore_eos": True, "stream": True}
    for other in others:  # each has one slot
        other.send(
            b"POST %b HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b"
            % (CHAT.encode(), len(json.dumps(body)), json.dumps(body).encode())
        )
        assert other.socket.recv(1)
    assert gauge(client, "vllm:num_requests_running") == 2
    for other in others:
        other.close()
    assert client.post(CHAT, messages=[{"content": "a"}], max_tokens=1).status == 200
    assert gauge(client, "vllm:num_requests_running") == 0


@with_flags(profile="h100-qwen3-8b", quantization="fp8", startup_s=0.0, max_num_batched_tokens=4096)
def test_server_info_reports_settings_by_flag_names(client: Client, server: Server) -> None:
    told = client.request("GET", "/server_info").json
    assert (told["profile"], told["quantization"], told["max_num_batched_tokens"]) == (
        "h100-qwen3-8b",
        "fp8",
        4096,
    )
    assert told == server.resolved()
    assert server.differences() == []


@with_flags(profile="h100-qwen3-8b", startup_s=0.0)
def test_a_profile_is_as_fast_as_it_says(client: Client) -> None:
    told = client.request("GET", "/server_info").json
    ask(client, "a", max_tokens=50)
    taken_s, gaps = (
        gauge(client, f"vllm:inter_token_latency_seconds_{what}") for what in ("sum", "count")
    )
    late_s = gauge(client, "sim:step_overrun_seconds_total")
    expected_s = (told["step_base_ms"] + told["weights_ms"] + told["decode_us_per_seq"] / 1e3) / 1e3
    assert gaps == 49
    assert 49 * expected_s <= taken_s < 49 * expected_s * 1.001 + late_s


@with_flags(
    enable_per_request_metrics=True,
    early_headers=True,
    frontend_ms=3,
    pause_every_s=0.05,
    pause_ms=20,
    freeze_every_s=0.02,
    freeze_ms=30,
)
def test_streams_are_whole_with_early_headers_pauses_and_freezes_and_say_their_times(
    client: Client,
) -> None:
    for _ in range(3):
        role, *told, usage = ask(
            client, "one two", max_tokens=60, stream_options={"include_usage": True}
        )
        assert role["choices"][0]["delta"]["role"] == "assistant"
        assert len(told) == 60
        times = usage["metrics"]
        assert times["queue_time_ms"] >= 0
        assert times["time_to_first_token_ms"] > 0
        assert times["mean_itl_ms"] == pytest.approx(times["generation_time_ms"] / 59)
    for part in ("queue", "prefill", "decode"):
        assert gauge(client, f"vllm:request_{part}_time_seconds_count") >= 3
