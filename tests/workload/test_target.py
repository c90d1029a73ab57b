"""The target turns prompts into the bytes of an OpenAI-compatible request."""

import orjson
import pytest
from msgspec import structs

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.workload import endpoints
from loadgen.workload.prompt import Prompt
from loadgen.workload.target import Target
from tests.helpers.request_targets import PROMPT, body, head, target


@pytest.fixture(autouse=True)
def no_key_around(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def test_a_chat_request_bears_the_prompt_as_the_users_message():
    assert body(backend="openai-chat") == {
        "model": "m",
        "messages": [{"role": "user", "content": "Why?"}],
        "max_completion_tokens": 64,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


@pytest.mark.parametrize("backend", ["openai", "vllm", None])
def test_a_completions_request_bears_the_prompt_as_it_is(backend):
    assert body(backend=backend) == {
        "model": "m",
        "prompt": "Why?",
        "max_tokens": 64,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_a_request_of_sglangs_own_api_has_its_sampling_parameters_apart():
    assert body(
        backend="sglang-native", temperature=0.0, ignore_eos=True, extra_body={"lora_path": None}
    ) == {
        "text": "Why?",
        "sampling_params": {"max_new_tokens": 64, "temperature": 0.0, "ignore_eos": True},
        "stream": True,
        "lora_path": None,
    }
    assert head(backend="sglang-native")[0] == "POST /generate HTTP/1.1"


@pytest.mark.parametrize("backend", ["openai", "openai-chat", "sglang-native"])
def test_an_answer_in_one_piece_is_asked_for_without_a_stream(backend):
    sent = body(backend=backend, disable_stream=True)
    assert sent["stream"] is False
    assert "stream_options" not in sent


def test_the_text_of_a_chat_may_be_sent_as_a_part():
    (message,) = body(backend="openai-chat", content_parts=True)["messages"]
    assert message == {"role": "user", "content": [{"type": "text", "text": "Why?"}]}
    assert body(backend="openai", content_parts=True) == body(backend="openai")


def test_token_ids_are_sent_in_place_of_the_text():
    asked = structs.replace(PROMPT, token_ids=(7, 8, 9))
    assert orjson.loads(target(backend="openai").body(asked))["prompt"] == [7, 8, 9]
    native = orjson.loads(target(backend="sglang-native").body(asked))
    assert (native["input_ids"], "text" in native) == ([7, 8, 9], False)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"backend": "openai"}, {"model": "a"}),
        ({"backend": "openai-chat"}, {"model": "a"}),
        (
            {"backend": "openai", "extra_body": {"lora_path": None}},
            {"model": "a", "lora_path": "a"},
        ),
        ({"backend": "sglang-native"}, {"lora_path": "a"}),
    ],
)
def test_a_prompt_may_ask_an_adapter(options, expected):
    found = orjson.loads(
        target(**options, lora_modules=("b", "a")).body(structs.replace(PROMPT, class_number=1))
    )
    assert {name: found.get(name) for name in ("model", "lora_path") if name in found} == expected


def test_each_class_has_its_model_priority_and_headers():
    made = target(
        classes=("chat:priority=-1,model=small,headers=X-Tenant=a,X-Tier=gold", "batch:priority=5")
    )
    bodies = [
        orjson.loads(made.body(structs.replace(PROMPT, class_number=number))) for number in range(2)
    ]
    assert [(body["model"], body["priority"]) for body in bodies] == [
        ("small", -1),
        (made.model, 5),
    ]
    heads = [one.head().decode() for one in made.each_class]
    assert ["X-Tenant: a\r\nX-Tier: gold\r\n" in head for head in heads] == [True, False]


def test_without_classes_a_target_is_its_only_class():
    made = target()
    assert made.each_class == (made,)


def test_the_path_alone_means_its_api():
    assert "text" in body(endpoint="/generate")
    assert "messages" in body(endpoint="/v1/chat/completions")
    assert "prompt" in body(endpoint="/my/completions")


def test_a_chat_of_several_messages_is_sent_as_it_is():
    messages = ({"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why?"})
    sent = target(backend="openai-chat").body(structs.replace(PROMPT, messages=messages))
    assert orjson.loads(sent)["messages"] == list(messages)


def test_chat_to_a_completions_endpoint_is_refused():
    messages = ({"role": "user", "content": "Why?"},)
    with pytest.raises(
        BadInput, match=r"^--dataset-name: its prompts are chats, .*; use a chat endpoint"
    ):
        target(backend="openai").body(structs.replace(PROMPT, messages=messages))


def test_sampling_parameters_are_sent_only_if_given():
    sent = body(temperature=0.0, top_k=5, ignore_eos=True)
    assert (sent["temperature"], sent["top_k"], sent["ignore_eos"]) == (0.0, 5, True)
    assert (
        not {"top_p", "min_p", "frequency_penalty", "presence_penalty", "repetition_penalty"}
        & sent.keys()
    )
    assert "ignore_eos" not in body()


def test_the_extra_body_wins_over_what_is_sent_otherwise():
    assert (
        body(
            temperature=0.5, extra_body={"temperature": 0.9, "max_tokens": 3, "guided": {"a": [1]}}
        ).items()
        >= {"temperature": 0.9, "max_tokens": 3}.items()
    )


def test_any_text_survives_the_way_into_json():
    text = 'quote " backslash \\ newline \n é 😀 \u2028 %d'
    sent = orjson.loads(target().body(Prompt(text, 1, 1, "")))
    assert sent["prompt"] == text


def test_the_head_ends_where_the_number_of_the_request_goes():
    line, lines = head(base_url="http://a:9000/api", endpoint="/v1/completions")
    assert line == "POST /api/v1/completions HTTP/1.1"
    assert dict(lines) == {
        "Host": "a:9000",
        "Accept": "text/event-stream, application/json",
        "Accept-Encoding": "identity",
        "Content-Type": "application/json",
        "User-Agent": "loadgen",
        "X-Request-Id": "loadgen-",
    }
    assert lines[-1][0] == "X-Request-Id"


def test_a_percent_sign_in_a_path_or_a_header_stays_one():
    line, lines = head(endpoint="/v1/a%20b", header=("X-Load=50%d",))
    assert line == "POST /v1/a%20b HTTP/1.1"
    assert ("X-Load", "50%d") in lines


def test_a_header_given_in_whatever_case_replaces_the_own_one():
    _, lines = head(header=("content-type=application/x", "HOST=elsewhere"))
    assert [value for name, value in lines if name.lower() == "content-type"] == ["application/x"]
    assert [value for name, value in lines if name.lower() == "host"] == ["elsewhere"]


@pytest.mark.parametrize("backend", ["openai-chat", "openai", "openai-responses", "sglang-native"])
def test_a_body_may_have_no_maximum_of_tokens(backend):
    settings = RunSettings(backend=backend, no_max_tokens=True)
    target = Target.from_settings(settings, "m")
    prompt = Prompt("hello", 1, 64, "x")
    assert "64" not in target.body(prompt).decode()
    assert b'":1' in target.body(Prompt("hello", 1, 1, "x"))  # of a probe, or to fill a cache


def test_no_maximum_of_tokens_is_refused_where_answers_would_not_end():
    assert RunSettings(no_max_tokens=True).implied().ignore_eos is False
    with pytest.raises(
        BadInput,
        match="--no-max-tokens: given together with --ignore-eos, which lets no answer end",
    ):
        endpoints.checked(RunSettings(no_max_tokens=True, ignore_eos=True))
    with pytest.raises(BadInput, match="--no-max-tokens: anthropic needs a maximum"):
        endpoints.checked(RunSettings(no_max_tokens=True, backend="anthropic"))
    with pytest.raises(BadInput, match="--no-max-tokens: "):
        endpoints.checked(RunSettings(no_max_tokens=True, backend="openai-embeddings"))


def test_fields_that_are_omitted_are_in_no_body():
    settings = {"backend": "openai-chat", "temperature": 0.5, "extra_body": {"min_tokens": 3}}
    omit = ("temperature", "stream_options", "min_tokens")
    plain = body(**settings, omit=omit)
    assert plain.keys() == body(**settings).keys() - {*omit}


def test_max_tokens_limits_a_chat_without_max_completion_tokens():
    sent = body(backend="openai-chat", omit=("max_completion_tokens",))
    assert ("max_completion_tokens" in sent, sent["max_tokens"]) == (False, 64)


def test_ignore_eos_is_not_implied_where_it_is_omitted():
    assert RunSettings().implied().ignore_eos is True
    assert RunSettings(omit=("ignore_eos",)).implied().ignore_eos is False
