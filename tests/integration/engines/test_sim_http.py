"""The simulator as its clients see it, over a loopback socket of a separate process."""

import socket
import threading
from typing import Any

import pytest
from tokenizers import Tokenizer

import loadgen
from loadgen.engines import Server
from loadgen.runner.server import OWNER
from tests.helpers.raw_client import FAST, Client, Reply, gauge, raw
from tests.helpers.sim_server import simulated

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"


def ask(client: Client, text: str = "one two three", **body: Any) -> Reply:
    return client.post(CHAT, model="sim", messages=[{"role": "user", "content": text}], **body)


def texts(reply: Reply, key: str = "content") -> list[str]:
    """The tokens of a streamed chat."""
    deltas = [event["choices"][0]["delta"] for event in reply.events[:-1] if event["choices"]]
    return [delta[key] for delta in deltas if delta.get(key)]


def test_streamed_chat_has_role_tokens_usage_and_done(client: Client) -> None:
    reply = ask(client, max_tokens=3, stream=True, stream_options={"include_usage": True})
    assert reply.status == 200
    assert reply.headers["content-type"] == "text/event-stream; charset=utf-8"
    role, first, second, third, usage, done = reply.events
    assert len(client.chunks) == 6
    assert role["choices"] == [
        {
            "index": 0,
            "delta": {"role": "assistant", "content": ""},
            "logprobs": None,
            "finish_reason": None,
        }
    ]
    for token in (first, second):
        [choice] = token["choices"]
        assert choice.keys() == {"index", "delta", "logprobs", "finish_reason"}
        assert choice["delta"].keys() == {"content"}
        assert choice["finish_reason"] is None
    [choice] = third["choices"]
    assert choice["delta"]["content"]
    assert choice["finish_reason"] == "length"
    assert usage["choices"] == []
    assert usage["usage"] == {"prompt_tokens": 3, "total_tokens": 6, "completion_tokens": 3}
    assert done == "[DONE]"
    assert {event["id"] for event in reply.events[:-1]} == {role["id"]}
    assert role["id"].startswith("chatcmpl-")
    assert role["object"] == "chat.completion.chunk"
    assert role["model"] == "sim"


def test_stream_that_stops_has_a_final_event_without_text(client: Client) -> None:
    *_, last, finish, _ = ask(client, stream=True).events
    assert last["choices"][0]["delta"]["content"]
    assert last["choices"][0]["finish_reason"] is None
    assert finish["choices"][0] == {
        "index": 0,
        "delta": {"content": ""},
        "logprobs": None,
        "finish_reason": "stop",
        "stop_reason": None,
    }


@pytest.mark.parametrize("tokens", [1, 5])
def test_counts_that_come_with_every_event_come_with_the_last(client: Client, tokens: int) -> None:
    options = {"include_usage": True, "continuous_usage_stats": True}
    *events, usage, _ = ask(client, max_tokens=tokens, stream=True, stream_options=options).events
    assert [event["usage"]["completion_tokens"] for event in events] == [*range(tokens + 1)]
    assert [event["choices"][0]["finish_reason"] for event in events] == [None] * tokens + [
        "length"
    ]
    assert usage["usage"]["completion_tokens"] == tokens


def test_usage_comes_only_when_asked_for(client: Client) -> None:
    assert not any("usage" in event for event in ask(client, max_tokens=2, stream=True).events[:-1])


def test_an_answer_of_one_token_has_every_part(client: Client) -> None:
    reply = ask(client, max_tokens=1, stream=True)
    assert [len(texts(reply)), len(reply.events)] == [1, 3]
    assert reply.events[1]["choices"][0]["finish_reason"] == "length"


def test_a_streamed_completion_has_texts_and_no_role(client: Client) -> None:
    reply = client.post(COMPLETIONS, prompt="one two", max_tokens=2, stream=True)
    first, second, done = reply.events
    assert first["choices"][0].keys() == {
        "index",
        "text",
        "logprobs",
        "finish_reason",
        "stop_reason",
    }
    assert not first["choices"][0]["text"].startswith(" ")
    assert second["choices"][0]["text"].startswith(" ")
    assert second["choices"][0]["finish_reason"] == "length"
    assert first["object"] == "text_completion"
    assert done == "[DONE]"


def test_whole_and_streamed_chat_with_one_seed_are_equal(client: Client) -> None:
    streamed = ask(client, max_tokens=20, seed=5, stream=True)
    whole = ask(client, max_tokens=20, seed=5).json
    assert whole["object"] == "chat.completion"
    assert whole["choices"][0]["message"] == {
        "role": "assistant", "content": "".join(texts(streamed)), "reasoning": None
    }  # fmt: skip
    assert whole["usage"] == {"prompt_tokens": 3, "total_tokens": 23, "completion_tokens": 20}


def test_a_whole_completion_has_its_text(client: Client) -> None:
    reply = client.post(COMPLETIONS, prompt=["one"], max_tokens=4).json
    assert len(reply["choices"][0]["text"].split(" ")) == 4
    assert reply["object"] == "text_completion"


def test_an_answer_tokenises_to_exactly_its_completion_tokens(
    client: Client, server: Server
) -> None:
    reply = ask(client, max_tokens=200).json
    text = reply["choices"][0]["message"]["content"]
    assert (
        len(Tokenizer.from_file(server.tokenizer).encode(text))
        == reply["usage"]["completion_tokens"]
        == 200
    )


def test_different_requests_are_answered_differently(client: Client) -> None:
    assert texts(ask(client, max_tokens=8, stream=True)) != texts(
        ask(client, max_tokens=8, stream=True)
    )


@pytest.mark.parametrize(
    ("body", "tokens", "reason"),
    [
        ({"messages": [{"content": "a"}]}, 128, "stop"),
        ({"messages": [{"content": "a"}], "max_tokens": 7}, 7, "length"),
        (
            {"messages": [{"content": "a"}], "max_tokens": 7, "max_completion_tokens": 9},
            9,
            "length",
        ),
        ({"messages": [{"content": "a"}], "ignore_eos": True}, FAST["max_model_len"] - 1, "length"),
        ({"messages": [{"content": "a"}], "min_tokens": 200}, 200, "stop"),
    ],
)
def test_the_length_of_an_answer_follows_its_limits(
    client: Client, body: dict[str, Any], tokens: int, reason: str
) -> None:
    reply = client.post(CHAT, **body).json
    assert reply["usage"]["completion_tokens"] == tokens
    assert reply["choices"][0]["finish_reason"] == reason


def test_a_completion_without_a_limit_has_16_tokens(client: Client) -> None:
    assert client.post(COMPLETIONS, prompt="a").json["usage"]["completion_tokens"] == 16


@pytest.mark.parametrize(
    ("body", "tokens"),
    [({"prompt": [5, 6, 7]}, 3), ({"prompt": [[5, 6, 7]]}, 3), ({"prompt": "a 12345, b"}, 5)],
)
def test_prompts_of_completions_are_counted(
    client: Client, body: dict[str, Any], tokens: int
) -> None:
    assert client.post(COMPLETIONS, max_tokens=1, **body).json["usage"]["prompt_tokens"] == tokens


def test_all_messages_and_parts_of_a_chat_are_counted(client: Client) -> None:
    parts = [{"type": "text", "text": "one two"}, {"type": "text", "text": "three"}]
    messages = [{"role": "system", "content": "a b"}, {"role": "user", "content": parts}]
    assert client.post(CHAT, messages=messages, max_tokens=1).json["usage"]["prompt_tokens"] == 5


@pytest.mark.parametrize(
    ("path", "body", "status", "param"),
    [
        (CHAT, b"{", 400, "body"),
        (CHAT, b"[]", 400, "body"),
        (CHAT, b'{"messages": [{"content": "\\ud800"}]}', 400, "body"),
        (CHAT, {"model": "nope", "messages": [{"content": "a"}]}, 404, "model"),
        (CHAT, {}, 400, "messages"),
        (CHAT, {"messages": ["a"]}, 400, "messages"),
        (CHAT, {"messages": [{"content": 1}]}, 400, "messages"),
        (CHAT, {"messages": [{"content": ""}]}, 400, "input_tokens"),
        (CHAT, {"messages": [{"content": "a"}], "max_tokens": 0}, 400, "max_tokens"),
        (CHAT, {"messages": [{"content": "a"}], "max_tokens": True}, 400, "max_tokens"),
        (
            CHAT,
            {"messages": [{"content": "a"}], "max_completion_tokens": 1024},
            400,
            "max_completion_tokens",
        ),
        (CHAT, {"messages": [{"content": "a " * 1023}]}, 400, "input_tokens"),
        (CHAT, {"messages": [{"content": "a"}], "stream": 1}, 400, "stream"),
        (CHAT, {"messages": [{"content": "a"}], "stream_options": []}, 400, "stream_options"),
        (COMPLETIONS, {"prompt": ["a", "b"]}, 400, "prompt"),
        (COMPLETIONS, {"prompt": "a", "max_tokens": "9"}, 400, "max_tokens"),
        ("/tokenize", {"model": "nope", "prompt": "a"}, 404, "model"),
        ("/v1/nothing", {}, 404, None),
        ("/v1/models", {}, 405, None),
    ],
)
def test_bad_requests_get_one_error_and_keep_the_connection(
    client: Client, path: str, body: Any, status: int, param: str | None
) -> None:
    reply = client.request("POST", path, body)
    assert reply.status == status
    assert reply.error["code"] == status
    assert reply.error["param"] == param
    assert "\n" not in reply.error["message"]
    assert client.request("GET", "/health").status == 200


def test_a_prompt_may_fill_the_context_but_for_its_answer(client: Client) -> None:
    assert (
        ask(client, " ".join(["word"] * 1014), max_tokens=10).json["usage"]["total_tokens"] == 1024
    )
    assert ask(client, " ".join(["word"] * 1015), max_tokens=10).status == 400


def test_models_list_has_length_tokenizer_and_owner(client: Client, server: Server) -> None:
    [model] = client.request("GET", "/v1/models").json["data"]
    assert model["owned_by"] == OWNER
    assert model["id"] == server.model
    assert model["max_model_len"] == 1024
    assert model["root"] + "/tokenizer.json" == server.tokenizer


def test_the_version_is_loadgens(client: Client) -> None:
    assert client.request("GET", "/version").json == {"version": loadgen.__version__}


def test_tokenize_gives_the_ids_of_the_shipped_tokenizer(client: Client, server: Server) -> None:
    text = "kamo stelau, 12345 é  unknownword\n"
    reply = client.post("/tokenize", prompt=text).json
    assert reply["tokens"] == Tokenizer.from_file(server.tokenizer).encode(text).ids
    assert reply["count"] == len(reply["tokens"])
    assert reply["max_model_len"] == 1024
    assert client.post("/tokenize", messages=[{"role": "user", "content": text}]).json == reply


def test_metrics_count_what_was_done() -> None:
    with simulated(**FAST) as server:
        client = Client(server.base_url)
        ask(client, max_tokens=5)
        ask(client, max_tokens=5, stream=True)
        # And the one token of one prompt that has shown that it is ready.
        assert gauge(client, "vllm:prompt_tokens_total") == 6 + 1
        assert gauge(client, "vllm:generation_tokens_total") == 10 + 1
        assert gauge(client, "vllm:time_to_first_token_seconds_count") == 2 + 1
        assert gauge(client, "vllm:inter_token_latency_seconds_count") == 8
        assert gauge(client, "vllm:e2e_request_latency_seconds_count") == 2 + 1
        assert (
            gauge(client, "vllm:num_requests_running")
            == gauge(client, "vllm:kv_cache_usage_perc")
            == 0
        )
        assert 'finished_reason="length"} 3' in client.request("GET", "/metrics").body.decode()
        client.close()


def test_reasoning_template_and_answer_length_follow_flags() -> None:
    knobs = {"reasoning_tokens": 3, "chat_template_tokens": 10, "mean_answer_tokens": 20.0}
    with simulated("m", **FAST, **knobs) as server:
        client = Client(server.base_url)
        body = {
            "model": "m",
            "messages": [{"content": "a"}],
            "max_tokens": 10,
            "ignore_eos": True,
            "seed": 1,
        }
        streamed = client.post(CHAT, stream=True, stream_options={"include_usage": True}, **body)
        assert len(texts(streamed, "reasoning")) == 3
        assert len(texts(streamed)) == 7
        whole = client.post(CHAT, **body).json
        assert streamed.events[-2]["usage"] == whole["usage"]
        assert whole["usage"]["prompt_tokens"] == 11
        assert whole["usage"]["completion_tokens_details"] == {"reasoning_tokens": 3}
        message = whole["choices"][0]["message"]
        assert (message["reasoning"], message["content"]) == (
            "".join(texts(streamed, "reasoning")),
            "".join(texts(streamed)),
        )
        lengths = [
            client.post(CHAT, messages=[{"content": "a"}], seed=seed, max_tokens=1000).json[
                "usage"
            ]["completion_tokens"]
            for seed in range(100)
        ]
        assert 12 < sum(lengths) / 100 < 30
        assert client.post("/tokenize", messages=[{"content": "a"}]).json["count"] == 11
        client.close()


def test_requests_sent_ahead_are_answered_in_order(client: Client) -> None:
    body = {"messages": [{"content": "a"}], "max_tokens": 3, "stream": True}
    client.send(
        raw("POST", CHAT, body)
        + raw("GET", "/health")
        + raw("POST", CHAT, {**body, "stream": False})
    )
    assert [client.receive().status for _ in range(3)] == [200, 200, 200]


def test_garbage_behind_a_request_is_refused_after_its_answer(client: Client) -> None:
    client.send(
        raw("POST", CHAT, {"messages": [{"content": "a"}], "max_tokens": 3, "stream": True})
        + b"garbage\r\n\r\n"
    )
    assert client.receive().status == 200
    assert client.receive().status == 400
    assert client.at_end()


def test_connection_close_is_honoured(client: Client) -> None:
    body = {"messages": [{"content": "a"}], "max_tokens": 3, "stream": True}
    reply = client.request("POST", CHAT, body, headers="Connection: close\r\n")
    assert reply.headers["connection"] == "close"
    assert client.at_end()


def test_leave_to_send_the_body_is_given(client: Client) -> None:
    request = raw(
        "POST",
        CHAT,
        {"messages": [{"content": "a"}], "max_tokens": 1},
        headers="Expect: 100-continue\r\n",
    )
    head, _, body = request.partition(b"\r\n\r\n")
    client.send(head + b"\r\n\r\n")
    assert client.receive().status == 100
    client.send(body)
    assert client.receive().status == 200


def test_a_request_may_come_byte_by_byte(client: Client) -> None:
    client.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for byte in raw("POST", CHAT, {"messages": [{"content": "a"}], "max_tokens": 1}):
        client.send(bytes([byte]))
    assert client.receive().status == 200


def test_a_client_that_leaves_frees_its_slot_and_cache() -> None:
    with simulated(
        **{**FAST, "step_base_ms": 1.0, "max_num_seqs": 1, "max_model_len": 100_000}
    ) as server:
        leaver, stayer = Client(server.base_url), Client(server.base_url)
        leaver.send(
            raw("POST", CHAT, {"messages": [{"content": "a"}], "ignore_eos": True, "stream": True})
        )
        assert leaver.socket.recv(1)
        assert gauge(stayer, "vllm:num_requests_running") == 1
        leaver.close()
        assert ask(stayer, max_tokens=1).status == 200
        assert (
            gauge(stayer, "vllm:num_requests_running")
            == gauge(stayer, "vllm:kv_cache_usage_perc")
            == 0
        )
        assert 'finished_reason="abort"} 1' in stayer.request("GET", "/metrics").body.decode()
        stayer.close()


@pytest.mark.slow
def test_a_client_that_does_not_read_is_cut_and_frees_its_slot() -> None:
    knobs = {"step_base_ms": 0.05, "max_model_len": 200_000, "max_num_seqs": 1, "frontend_ms": 0.0}
    with simulated(**knobs) as server:
        sleeper, stayer = Client(server.base_url, receive_buffer=4096), Client(server.base_url)
        sleeper.send(
            raw("POST", CHAT, {"messages": [{"content": "a"}], "ignore_eos": True, "stream": True})
        )
        assert ask(stayer, max_tokens=1).status == 200
        assert gauge(stayer, "sim:streams_cut_total") == 1
        assert gauge(stayer, "vllm:num_requests_running") == 0
        sleeper.close()
        stayer.close()


def test_many_streams_at_once_are_whole_and_their_own() -> None:
    with simulated(**FAST) as server:
        replies: dict[int, Reply] = {}

        def one(seed: int) -> None:
            client = Client(server.base_url)
            replies[seed] = ask(client, max_tokens=50, seed=seed, stream=True)
            client.close()

        threads = [threading.Thread(target=one, args=(seed,)) for seed in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert {len(texts(reply)) for reply in replies.values()} == {50}
        assert len({tuple(texts(reply)) for reply in replies.values()}) == 20
        assert len({reply.events[0]["id"] for reply in replies.values()}) == 20


def test_sglangs_own_api_streams_its_counts_with_every_event(client: Client) -> None:
    *tokens, done = client.post(
        "/generate", text="one two", sampling_params={"max_new_tokens": 3}, stream=True
    ).events
    assert done == "[DONE]"
    assert all(event["text"] for event in tokens)
    assert [event["meta_info"]["completion_tokens"] for event in tokens] == [1, 2, 3]
    assert {event["meta_info"]["prompt_tokens"] for event in tokens} == {2}
    assert [event["meta_info"]["finish_reason"] for event in tokens] == [
        None,
        None,
        {"type": "length"},
    ]


def test_sglangs_own_api_answers_in_one_piece_and_takes_token_ids(client: Client) -> None:
    answer = client.post(
        "/generate", input_ids=[1, 2, 3], sampling_params={"max_new_tokens": 2}
    ).json
    assert answer["text"]
    assert {
        "prompt_tokens": 3,
        "completion_tokens": 2,
        "finish_reason": {"type": "length"},
    }.items() <= (answer["meta_info"].items())


@pytest.mark.parametrize("body", [{}, {"text": "a", "sampling_params": [1]}])
def test_a_request_of_sglangs_own_api_that_is_wrong_is_refused(
    client: Client, body: dict[str, Any]
) -> None:
    assert client.post("/generate", **body).status == 400


def test_a_run_of_sglangs_own_api_counts_every_token(server: Server, tmp_path: Any) -> None:
    settings = loadgen.RunSettings(
        base_url=server.base_url,
        endpoint="/generate",
        num_prompts=5,
        random_input_len=8,
        random_output_len=4,
    )
    result = loadgen.run_sync(settings)
    numbers = result.data["loadgen"] | result.data
    assert (numbers["backend"], numbers["completed"], numbers["total_output_tokens"]) == (
        "sglang-native",
        5,
        20,
    )
    assert numbers["total_input_tokens"] == 40
