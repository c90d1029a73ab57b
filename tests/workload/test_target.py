"""The target turns prompts into the bytes of an OpenAI-compatible request and keeps secrets to
it.
"""

import base64

import orjson
import pytest
from msgspec import structs

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.util.route import DIRECT, Route
from loadgen.workload import endpoints
from loadgen.workload.prompt import Prompt
from loadgen.workload.target import Target, base_url, endpoint, headers, is_chat, models_url

PROMPT = Prompt("Why?", 3, 64, "test/0")
SECRET = "hunter2"


@pytest.fixture(autouse=True)
def no_key_around(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def target(**options):
    return Target.from_settings(RunSettings(**options), "m")


def body(**options):
    return orjson.loads(target(**options).body(PROMPT))


def head(**options):
    """The request line and the headers, in the order in which they are sent."""
    line, *rest = target(**options).head().decode("latin-1").split("\r\n")
    return line, [tuple(header.split(": ", 1)) for header in rest]


# -- bodies


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


# -- heads


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


# -- where to


@pytest.mark.parametrize(
    ("options", "url"),
    [
        ({}, "http://127.0.0.1:8000"),
        ({"port": 9}, "http://127.0.0.1:9"),
        ({"host": "a"}, "http://a:8000"),
        ({"host": "::1", "port": 80}, "http://[::1]:80"),
        ({"base_url": "https://a.example/"}, "https://a.example"),
        ({"base_url": "http://a:1/prefix/"}, "http://a:1/prefix"),
        ({"base_url": f"http://me:{SECRET}@a:1"}, "http://a:1"),
    ],
)
def test_the_base_url_is_given_whole_or_by_host_and_port(options, url):
    assert base_url(RunSettings(**options)) == url


CHAT, AZURE = "/v1/chat/completions", "https://r.openai.azure.com/openai"


@pytest.mark.parametrize(
    ("pasted", "url", "models"),
    [
        ("http://a:1/v1", f"http://a:1{CHAT}", "http://a:1/v1/models"),
        ("http://a:1/v1/", f"http://a:1{CHAT}", "http://a:1/v1/models"),
        ("a:1/v1", f"http://a:1{CHAT}", "http://a:1/v1/models"),
        ("localhost", f"http://localhost{CHAT}", "http://localhost/v1/models"),
        ("[::1]:8000", f"http://[::1]:8000{CHAT}", "http://[::1]:8000/v1/models"),
        (f"http://[::1]:8000{CHAT}", f"http://[::1]:8000{CHAT}", "http://[::1]:8000/v1/models"),
        (f"https://a/p{CHAT}?k=v", f"https://a/p{CHAT}?k=v", "https://a/p/v1/models"),
        ("https://a/api/v1?k=v", f"https://a/api{CHAT}?k=v", "https://a/api/v1/models?k=v"),
        (
            "https://a/api/paas/v4",
            "https://a/api/paas/v4/chat/completions",
            "https://a/api/paas/v4/models",
        ),
        (
            "https://a/v1beta/openai/",
            "https://a/v1beta/openai/chat/completions",
            "https://a/v1beta/openai/models",
        ),
        (f"{AZURE}/v1/", f"{AZURE}{CHAT}", f"{AZURE}/v1/models"),
        (
            f"{AZURE}/deployments/d?api-version=1",
            f"{AZURE}/deployments/d/chat/completions?api-version=1",
            None,
        ),
        (
            f"{AZURE}/deployments/d/chat/completions?api-version=1",
            f"{AZURE}/deployments/d/chat/completions?api-version=1",
            None,
        ),
    ],
)
def test_a_url_is_taken_as_it_is_pasted(pasted, url, models):
    settings = endpoints.checked(RunSettings(base_url=pasted, backend="openai-chat"))
    assert Target.from_settings(settings, "m").url == url
    assert models_url(settings) == models
    assert settings.replace(num_prompts=3).replace(num_prompts=None) == settings


@pytest.mark.parametrize(
    ("path", "backend"),
    [
        (CHAT, "openai-chat"),
        ("/v1/completions", "openai"),
        ("/v1/responses", "openai-responses"),
        ("/v1/messages", "anthropic"),
        ("/v1/embeddings", "openai-embeddings"),
        ("/generate", "sglang-native"),
        ("/openai/deployments/d/chat/completions?api-version=1", "openai-chat"),
    ],
)
def test_the_url_of_an_endpoint_chooses_the_backend(path, backend):
    assert endpoints.name_of(RunSettings(base_url=f"http://a:1{path}")) == backend


def test_one_endpoint_is_named_once():
    both = RunSettings(base_url=(f"http://a{CHAT}", f"http://b{CHAT}"))
    assert (both.urls, both.endpoint) == (("http://a", "http://b"), CHAT)
    for settings in (
        RunSettings(base_url=f"http://a{CHAT}", endpoint="/v1/completions"),
        RunSettings(base_url=("http://a/v1/completions", f"http://b{CHAT}")),
        RunSettings(base_url=("http://a", f"http://b{CHAT}")),
    ):
        with pytest.raises(BadInput, match=r"--base-url: http://. names|--base-url: http://./v1/"):
            settings.checked()


def test_v1_of_the_url_and_of_the_endpoint_is_one():
    for base, path in (("http://a/v1", CHAT), ("http://a/v1", "/chat/completions")):
        settings = RunSettings(base_url=base, endpoint=path)
        assert Target.from_settings(settings, "m").url == f"http://a{CHAT}"
        assert models_url(settings) == "http://a/v1/models"


def test_a_deployment_gets_the_key_in_its_own_header():
    url = f"{AZURE}/deployments/d?api-version=1"
    assert headers(RunSettings(base_url=url, api_key=SECRET)) == {"api-key": SECRET}


def test_a_port_that_is_out_of_range_is_said_to_be():
    for port in (0, 65536, 99999):
        with pytest.raises(BadInput, match=f"port {port} is out of range") as refused:
            base_url(RunSettings(base_url=f"http://me:{SECRET}@a:{port}/prefix"))
        assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "a",
        "me@a:8000",
        "ftp://a",
        "http://",
        "http://a:0",
        "http://a:99999",
        "http://a:x",
        "http://[::1",
        "http://a b",
        "http://a#x",
        f"u:{SECRET}@a",
        f"ftp://u:{SECRET}@a",
    ],
)
def test_invalid_base_url_is_refused_without_its_user(url):
    with pytest.raises(BadInput) as caught:
        base_url(RunSettings(base_url=url))
    assert caught.value.field == "--base-url"
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "meant"),
    [
        ("a", "http://a"),
        ("api.example.com/v1", "http://api.example.com/v1"),
        ("ftp://a", "http://HOST:PORT"),
        ("a b", "http://HOST:PORT"),
        ("", "http://HOST:PORT"),
    ],
)
def test_url_without_scheme_is_refused_with_the_full_url(url, meant):
    with pytest.raises(BadInput) as caught:
        base_url(RunSettings(base_url=url))
    assert caught.value.remedy == f"write {meant}"


@pytest.mark.parametrize(
    ("options", "path", "chat"),
    [
        ({}, "/v1/completions", False),
        ({"backend": "openai"}, "/v1/completions", False),
        ({"backend": "vllm"}, "/v1/completions", False),
        ({"backend": "openai-chat"}, "/v1/chat/completions", True),
        ({"endpoint": "/v1/chat/completions"}, "/v1/chat/completions", True),
        ({"endpoint": "api/completions"}, "/api/completions", False),
        (
            {"backend": "openai-chat", "endpoint": "/x/chat/completions"},
            "/x/chat/completions",
            True,
        ),
    ],
)
def test_backend_and_endpoint_follow_from_each_other(options, path, chat):
    settings = RunSettings(**options)
    assert (endpoint(settings), is_chat(settings)) == (path, chat)


@pytest.mark.parametrize("path", ["/v1/a b", "/v1/ü", "/v1\r\nX: y", "/v1/\x00"])
def test_a_path_that_cannot_stand_in_a_request_line_is_refused(path):
    with pytest.raises(BadInput) as caught:
        endpoint(RunSettings(endpoint=path))
    assert caught.value.field == "--endpoint"
    assert "\n" not in str(caught.value)


def test_certificates_are_checked_unless_told_otherwise():
    assert (target().route, target(insecure=True).route) == (DIRECT, Route(verify=False))


# -- credentials


def test_the_api_key_is_a_bearer_token():
    assert headers(RunSettings(api_key=SECRET)) == {"Authorization": f"Bearer {SECRET}"}


def test_the_api_key_may_come_from_the_environment(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "from env")
    assert headers(RunSettings()) == {"Authorization": "Bearer from env"}
    assert headers(RunSettings(api_key=SECRET)) == {"Authorization": f"Bearer {SECRET}"}


def test_a_user_in_the_url_is_basic_authorization(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "from env")
    given = headers(RunSettings(base_url="http://me:hunter%402@a"))
    assert given == {"Authorization": "Basic " + base64.b64encode(b"me:hunter@2").decode()}


def test_a_header_wins_over_the_key_in_whatever_case():
    assert headers(RunSettings(api_key="key", header=("authorization=Token x",))) == {
        "authorization": "Token x"
    }


def test_headers_split_at_the_first_equals_sign():
    assert headers(RunSettings(header=("X-A=b=c==", " X-B = d "))) == {"X-A": "b=c==", "X-B": "d"}


@pytest.mark.parametrize(
    "given",
    ["Authorization: Bearer a=b:c", "Authorization:Bearer a=b:c ", "Authorization=Bearer a=b:c"],
)
def test_a_header_may_be_written_as_for_curl(given):
    assert headers(RunSettings(header=(given,))) == {"Authorization": "Bearer a=b:c"}


def test_the_key_may_be_in_a_header_of_its_own():
    assert headers(RunSettings(api_key=SECRET, api_key_header="api-key")) == {"api-key": SECRET}


@pytest.mark.parametrize(
    "given",
    [
        f"Authorization Bearer {SECRET}",
        f": Basic {SECRET}==",
        f"={SECRET}",
        f"X Y={SECRET}",
        f"X-A={SECRET}\r\nX-B: c",
        f"X-A={SECRET}\u2028 x",
        SECRET,
        f"Content-Length={SECRET}",
        f"transfer-encoding={SECRET}",
    ],
)
def test_invalid_header_is_refused_without_its_value(given):
    with pytest.raises(BadInput) as caught:
        headers(RunSettings(header=(given,)))
    assert caught.value.field == "--header"
    assert caught.value.remedy
    assert SECRET not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_invalid_api_key_is_refused_without_showing_it():
    with pytest.raises(BadInput) as caught:
        headers(RunSettings(api_key=f"{SECRET}\n"))
    assert caught.value.field == "--api-key"
    assert SECRET not in str(caught.value)


def test_target_repr_holds_no_secret():
    made = target(api_key=SECRET, header=(f"X-Key={SECRET}",), base_url=f"http://me:{SECRET}@a")
    assert SECRET in str(made.headers)
    assert SECRET not in repr(made)
    assert SECRET not in made.url


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (SECRET, "a header has no name, or neither = nor :"),
        (f"={SECRET}", "a header has no name, or neither = nor :"),
    ],
)
def test_a_header_that_is_none_is_refused_without_its_text(given, problem):
    with pytest.raises(BadInput) as refused:
        headers(RunSettings(header=(given,)))
    assert str(refused.value) == f"--header: {problem}; write Name=value"


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


# -- what requests do without


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
