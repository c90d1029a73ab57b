"""The first probe of the server, which waits for it as long as the test request may take."""

import asyncio
from types import SimpleNamespace

import orjson
import pytest

from loadgen.config.data import BUILT_IN_TOKENIZER
from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput, Unreachable
from loadgen.runner import server
from loadgen.util.http_client import Reply

URL = "http://a:8000"
NOBODY = Unreachable(f"{URL}/v1/models: refused")
LISTS = Reply(200, b'{"data": [{"id": "m"}]}', {})
STARTING = Reply(503, b"", {})
# No test request, and no tokenizer is looked for.
SETTINGS = RunSettings(base_url=URL, preflight=False, adapt=False)
WAITING = SETTINGS.replace(model="m", ready_check_timeout_sec=30.0)


@pytest.fixture
def answers(monkeypatch):
    """What the server answers, one look after the other, the last for ever; only sleeping takes
    time.
    """
    told, now = [], [0.0]

    async def get(url, **options):
        if not url.endswith("/v1/models"):
            return Reply(404, b"", {})
        answer = told.pop(0) if len(told) > 1 else told[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def sleep(seconds):
        now[0] += seconds

    monkeypatch.setattr(server.http_client, "get", get)
    monkeypatch.setattr(server, "asyncio", SimpleNamespace(sleep=sleep))
    monkeypatch.setattr(server, "time", SimpleNamespace(monotonic=lambda: now[0]))
    return told


@pytest.mark.parametrize("not_yet", [NOBODY, STARTING])
async def test_a_server_that_is_starting_is_waited_for_and_that_is_told(answers, not_yet):
    answers += [not_yet, not_yet, LISTS]
    told = []
    assert (await server.probe(WAITING, told.append)).models == ("m",)
    assert [(progress.phase, progress.elapsed_s) for progress in told] == [
        ("waiting", 0.0),
        ("waiting", 1.0),
    ]
    assert all(f"{URL}/v1/models" in progress.note for progress in told)


async def test_absent_server_is_refused_when_the_time_is_over(answers):
    answers.append(NOBODY)
    told = []
    with pytest.raises(Unreachable, match="refused; start the server"):
        await server.probe(WAITING, told.append)
    assert len(told) == 30


async def test_without_a_test_request_it_must_be_there_at_once(answers):
    answers += [NOBODY, LISTS]
    told = []
    with pytest.raises(Unreachable, match="start the server"):
        await server.probe(WAITING.replace(ready_check_timeout_sec=0.0), told.append)
    assert told == []


async def test_an_answer_that_will_not_change_is_not_waited_for(answers):
    answers += [Reply(401, b"", {}), LISTS]
    with pytest.raises(BadInput, match="--api-key"):
        await server.probe(WAITING)


async def test_server_without_models_is_refused_with_the_likely_cause(answers):
    answers.append(Reply(404, b"", {}))
    with pytest.raises(BadInput) as refused:
        await server.probe(SETTINGS)
    said = (
        f"--model: {URL}/v1/models lists no model (status 404); name the model, if it is an "
        "LLM server"
    )
    assert str(refused.value) == said


# -- its tokenizer, where no other is named


def lists(root, name="m"):
    return Reply(200, orjson.dumps({"data": [{"id": name, "root": root}]}), {})


async def tokenizer(answers, root, **given):
    answers.append(lists(root))
    return (await server.probe(SETTINGS.replace(**given))).settings.tokenizer


async def test_tokenizer_is_the_servers_model_folder_or_hub_name(answers, tmp_path):
    (tmp_path / "tokenizer.json").touch()
    assert await tokenizer(answers, str(tmp_path)) == str(tmp_path)
    answers.clear()
    assert await tokenizer(answers, "Qwen/Qwen3-8B") == "Qwen/Qwen3-8B"


@pytest.mark.parametrize(
    "root", [None, "", 7, "m", "/models/on/another/machine", "s3://models/m", "../m"]
)
async def test_unusable_model_root_falls_back_to_the_model_name(answers, root):
    assert await tokenizer(answers, root) == "m"


async def test_a_folder_without_a_tokenizer_is_passed_over(answers, tmp_path):
    assert await tokenizer(answers, str(tmp_path)) == "m"


@pytest.mark.parametrize(
    "given", [{"tokenizer": "mine"}, {"model": "mine", "served_model_name": "m"}], ids=str
)
async def test_tokenizer_named_by_the_user_wins(answers, given):
    assert await tokenizer(answers, "Qwen/Qwen3-8B", **given) == "mine"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, BUILT_IN_TOKENIZER),
        ({"adapt": False}, "m"),
        ({"strict": True, "adapt": None}, "m"),
        ({"tokenizer": "org/gone"}, "org/gone"),
    ],
    ids=str,
)
async def test_loadgens_own_tokenizer_replaces_one_that_is_not_to_be_had(
    answers, monkeypatch, given, expected
):
    monkeypatch.setattr(server.tokenizers, "is_available", lambda name: False)
    monkeypatch.setattr(server.asyncio, "to_thread", asyncio.to_thread, raising=False)
    assert await tokenizer(answers, None, **{"adapt": True} | given) == expected


async def test_an_encoding_of_tiktoken_goes_before_loadgens_own_tokenizer(answers, monkeypatch):
    monkeypatch.setattr(server.tokenizers, "is_available", lambda name: False)
    monkeypatch.setattr(server.tokenizers, "of_openai", "tiktoken:of_{}".format)
    monkeypatch.setattr(server.asyncio, "to_thread", asyncio.to_thread, raising=False)
    assert await tokenizer(answers, None, adapt=True) == "tiktoken:of_m"


@pytest.mark.parametrize(
    ("owner", "simulated"), [(server.OWNER, True), ("loadgen", False), ("vllm", False)]
)
async def test_simulator_is_recognised_by_the_owner_of_its_model(answers, owner, simulated):
    answers.append(Reply(200, b'{"data": [{"id": "m", "owned_by": "%s"}]}' % owner.encode(), {}))
    assert (await server.probe(WAITING)).simulated is simulated


ADAPTERS = Reply(200, b'{"data": [{"id": "m"}, {"id": "sql"}]}', {})


async def test_a_model_of_a_class_that_the_server_does_not_have_is_refused(answers):
    answers.append(ADAPTERS)
    with pytest.raises(BadInput) as refused:
        await server.probe(WAITING.replace(classes=("a:model=sqk", "b:model=sql")))
    assert (
        str(refused.value)
        == f"--class: a: the server at {URL} has no model 'sqk'; choose from 'm', 'sql'"
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"classes": ("a:model=sql", "b:priority=1")},
        # a server may load an adapter when it is first asked for
        {"lora_modules": ("sql", "chat")},
        {"backend": "sglang-native", "lora_modules": ("chat",)},
        {"extra_body": {"lora_path": None}, "lora_modules": ("chat",)},
    ],
)
async def test_models_that_are_listed_and_adapters_in_another_field_are_accepted(answers, changes):
    answers.append(ADAPTERS)
    assert (await server.probe(WAITING.replace(**changes))).models == ("m", "sql")
