"""The server's count of prompt tokens: predicted, probed if needed, and compared with its usage."""

import json
from pathlib import Path

import pytest

import loadgen
from loadgen.engines.sim.http1 import Request, whole
from loadgen.errors import BadInput
from loadgen.metrics.records.file import RecordFile
from loadgen.testing.replies import DONE, delta, streamed, usage
from loadgen.workload.chat_template.template_tokens import ask_server
from loadgen.workload.target import Target
from tests.helpers import chat_templates
from tests.helpers.repeated import Repeated
from tests.helpers.scripted_server import chatting, serving
from tests.helpers.source import ROOT

TOKENIZER = ROOT / "engines" / "sim" / "tokenizer.json"
# 4 tokens of the simulator's tokenizer
TEMPLATE = "{% for m in messages %}<>{{ m.content }}</{% endfor %}"
SETTINGS = loadgen.RunSettings(
    backend="openai-chat",
    num_prompts=3,
    request_rate=200,
    random_input_len=20,
    tokenizer=str(TOKENIZER),
)


class Chat:
    """A server whose template adds `template_tokens` to those of each word, and which may report
    them.

    Attributes:
        asked: The paths of what was asked, other than streams.
        probes: The bodies of these.
    """

    def __init__(self, template_tokens: int, *, knows: str = "") -> None:
        self.template_tokens, self.knows = template_tokens, knows
        self.asked: list[str] = []
        self.probes: list[dict[str, object]] = []

    def reply(self, ask: Request) -> bytes:
        body = ask.json
        if body.get("stream"):
            counted = self.counted(body)
            return streamed(
                delta("stop", content="a")
                + usage(prompt_tokens=counted, completion_tokens=1)
                + DONE
            )
        self.asked.append(ask.path)
        self.probes.append(body)
        if ask.path == "/tokenize" and self.knows == "vllm":
            return told({"count": self.counted(body), "tokens": []})
        if ask.path == "/apply-template" and self.knows == "llama.cpp":
            return told({"prompt": "<>Hello</"})
        if ask.path == "/tokenize" and self.knows == "llama.cpp":
            return told({"tokens": [0] * (5 if body.get("content") == "<>Hello</" else 0)})
        if ask.path == "/v1/chat/completions" and self.knows == "usage":
            return told(
                {
                    "choices": [],
                    "usage": {"prompt_tokens": self.counted(body), "completion_tokens": 1},
                }
            )
        return whole(404, b"{}")

    def counted(self, body: dict[str, object]) -> int:
        (message,) = body["messages"]  # type: ignore[misc]
        return len(message["content"].split()) + self.template_tokens


def told(answer: dict[str, object]) -> bytes:
    return whole(200, json.dumps(answer).encode())


async def measured(
    server: Chat, settings: loadgen.RunSettings, **options: object
) -> dict[str, object]:
    async with serving(chatting(server.reply)) as url:
        result = await loadgen.run(settings.replace(base_url=url), **options)  # type: ignore[arg-type]
    return result.data


def check(data: dict, name: str = "input length off") -> dict:
    return next(check for check in data["loadgen"]["checks"] if check["name"] == name)


@pytest.mark.parametrize(
    ("backend", "starts"), [("openai-chat", True), ("openai-embeddings-chat", False)]
)
async def test_a_server_is_asked_for_the_start_of_an_answer_where_there_is_one(
    backend: str, starts: bool
) -> None:
    server = Chat(4, knows="vllm")
    async with serving(chatting(server.reply)) as url:
        target = Target.from_settings(SETTINGS.replace(backend=backend, base_url=url), "m")
        assert (await ask_server(target, url, 1)).tokens == 4
    assert [probe["add_generation_prompt"] for probe in server.probes] == [starts]


async def test_a_local_template_predicts_what_the_server_counts(tmp_path: Path) -> None:
    folder = chat_templates.beside(TOKENIZER, TEMPLATE, tmp_path)
    server = Chat(4)
    records = tmp_path / "r.jsonl"
    data = await measured(server, SETTINGS.replace(tokenizer=str(folder), records=str(records)))
    assert check(data)["ok"] is True
    assert "predicted" in check(data)["value"]
    tokens = data["loadgen"]["tokens"]
    assert (tokens["planned_input_tokens"], tokens["predicted_server_input_tokens"]) == (60, 72)
    assert data["total_input_tokens"] == 72
    assert tokens["predicted_from"]["overhead"] == 4
    assert (
        tokens["predicted_from"]["source"] == f"the chat template {folder / 'chat_template.jinja'}"
    )
    assert server.asked == []
    assert [(r.input_tokens, r.server_tokens, r.prompt_tokens) for r in RecordFile(records)] == [
        (20, 24, 24)
    ] * 3
    again = loadgen.from_records(records).data["loadgen"]
    assert again["tokens"] == tokens
    assert again["checks"] == data["loadgen"]["checks"]


async def test_a_template_that_is_not_the_servers_is_told_by_how_many_tokens(
    tmp_path: Path,
) -> None:
    folder = chat_templates.beside(TOKENIZER, TEMPLATE, tmp_path)
    failed = check(await measured(Chat(9), SETTINGS.replace(tokenizer=str(folder))))
    assert failed["ok"] is False
    assert "5 tokens more by the server's mean" in failed["value"]
    assert f"(the chat template {folder / 'chat_template.jinja'}; 4 tokens" in failed["advice"]
    assert "name the folder" in failed["advice"]


async def test_prompts_without_a_template_are_held_to_own_tokens() -> None:
    server = Chat(9, knows="vllm")
    data = await measured(server, SETTINGS)
    assert "0% of prompts have the planned length (9 tokens more" in check(data)["value"]
    assert data["loadgen"]["tokens"]["predicted_server_input_tokens"] is None
    assert "has no chat template" in data["loadgen"]["tokens"]["predicted_from"]["unknown"]
    assert server.asked == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("knows", "source", "asked"),
    [
        ("vllm", "the server's /tokenize", ["/tokenize"]),
        (
            "llama.cpp",
            "the server's /apply-template and /tokenize",
            ["/tokenize", "/apply-template", "/tokenize"],
        ),
        (
            "usage",
            "the usage of one request",
            ["/tokenize", "/apply-template", "/v1/chat/completions"],
        ),
    ],
)
async def test_the_server_is_asked_where_lengths_are_to_be_its(
    knows: str, source: str, asked: list[str]
) -> None:
    server = Chat(4, knows=knows)
    data = await measured(server, SETTINGS.replace(input_len_counts="server"))
    assert server.asked == asked
    assert data["total_input_tokens"] == 60
    assert check(data)["ok"] is True
    assert data["loadgen"]["tokens"]["predicted_from"] == {
        "overhead": 4,
        "source": source,
        "template_sha256": None,
        "unknown": None,
    }
    assert data["loadgen"]["tokens"]["planned_input_tokens"] == 3 * 16


async def test_the_server_is_asked_about_what_every_request_will_tell_the_template() -> None:
    kwargs = {"chat_template_kwargs": {"enable_thinking": False}}
    server = Chat(4, knows="vllm")
    await measured(
        server, SETTINGS.replace(input_len_counts="server", extra_body=kwargs | {"top_k": 3})
    )
    (probe,) = server.probes
    assert probe["chat_template_kwargs"] == {"enable_thinking": False}
    assert "top_k" not in probe


async def test_probe_asks_for_a_single_token() -> None:
    server = Chat(4, knows="usage")
    await measured(server, SETTINGS.replace(input_len_counts="server"))
    assert server.probes[-1]["max_completion_tokens"] == 1


async def test_the_server_is_not_asked_where_the_template_is_at_hand(tmp_path: Path) -> None:
    folder = chat_templates.beside(TOKENIZER, TEMPLATE, tmp_path)
    server = Chat(4, knows="vllm")
    data = await measured(
        server, SETTINGS.replace(tokenizer=str(folder), input_len_counts="server")
    )
    assert server.asked == []
    assert data["total_input_tokens"] == 60


async def test_a_server_that_does_not_say_is_refused_before_anything_is_measured() -> None:
    with pytest.raises(
        BadInput,
        match=r"input_len_counts: the tokenizer has no chat template, .* does not count the "
        r"tokens of a chat;",
    ):
        await measured(Chat(4), SETTINGS.replace(input_len_counts="server"))


async def test_a_caller_says_itself_what_the_server_will_count() -> None:
    mine = Repeated(loadgen.Prompt("one two", 2, 1, "mine", server_tokens=6))
    data = await measured(Chat(4), SETTINGS, dataset=mine)
    assert check(data)["ok"] is True
    assert data["loadgen"]["tokens"]["predicted_server_input_tokens"] == 18


async def test_a_callers_own_prompts_cannot_be_made_to_a_measure() -> None:
    mine = Repeated(loadgen.Prompt("one two", 2, 1, "mine"))
    with pytest.raises(
        BadInput, match="input_len_counts: the length of your own data set is fixed"
    ):
        await measured(Chat(4), SETTINGS.replace(input_len_counts="server"), dataset=mine)


@pytest.mark.slow
async def test_the_simulator_counts_what_was_planned() -> None:
    for counts in ("raw", "server"):
        settings = loadgen.RunSettings(
            engine="sim",
            request_rate=100,
            num_prompts=5,
            random_input_len=9,
            input_len_counts=counts,
        )
        data = (await loadgen.run(settings)).data
        assert check(data)["ok"] is True
        assert data["loadgen"]["tokens"]["predicted_server_input_tokens"] == 45
        assert data["loadgen"]["tokens"]["predicted_from"]["source"] == "the chat template of sim"
