"""What loadgen sends is what vLLM's clients send with the same flags, key for key; random texts
are not compared.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from bench.engines.environments import CannotBeMade, Recipe, made
from bench.peers import recipes
from bench.peers.compare_vllm import offline
from tests.helpers.command_line import LOADGEN, TOKENIZER
from tests.helpers.sent_bodies import TOKENS, bodies

pytestmark = pytest.mark.timeout(1800)  # installs the clients once

INPUT, OUTPUT, COUNT = 12, TOKENS, 3
LENGTHS = f"--random-input-len {INPUT} --random-output-len {OUTPUT}".split()
CHAT = ["--backend", "openai-chat", "--endpoint", "/v1/chat/completions"]
SAMPLING = [
    *("--temperature", "0.5", "--top-p", "0.9", "--top-k", "3", "--min-p", "0.1"),
    *("--frequency-penalty", "0.2", "--presence-penalty", "0.3", "--repetition-penalty", "1.1"),
]
EXTRA = ["--extra-body", '{"min_tokens": 2, "nested": {"a": [1, null]}}']
# The Python client sends it with completions, the Rust client does not.
ALWAYS = {"repetition_penalty": 1.0}
CASES = {
    "completions": [],
    "chat": CHAT,
    "sampling of completions": SAMPLING,
    "sampling of a chat": [*CHAT, *SAMPLING],
    "ignore-eos": ["--ignore-eos"],
    "logprobs": ["--logprobs", "2"],
    "logprobs of a chat": [*CHAT, "--logprobs", "2"],
    "extra body": EXTRA,
    "extra body of a chat": [*CHAT, *EXTRA],
    "extra body over a flag": ["--temperature", "0.5", "--extra-body", '{"temperature": 0.7}'],
    "served name": ["--served-model-name", "m"],
    "token ids": ["--prompt-token-ids"],
}
# The fields of `RequestFuncInput` that vLLM's command makes of the flags of the cases that its
# Python client has.
MADE = {
    "completions": {},
    "chat": {},
    "logprobs": {"logprobs": 2},
    "logprobs of a chat": {"logprobs": 2},
    "extra body": {"extra_body": json.loads(EXTRA[1])},
    "extra body of a chat": {"extra_body": json.loads(EXTRA[1])},
    "extra body over a flag": {"extra_body": {"temperature": 0.7}},
}


def installed(recipe: Recipe) -> Path:
    try:
        return made(recipe, recipes.FOLDER)
    except CannotBeMade as error:
        pytest.skip(f"{recipe.name} cannot be installed: {error}")


def shape(body: dict[str, Any]) -> dict[str, Any]:
    """A body without its random text; of token ids only how many there are."""
    prompt = body.get("prompt")
    if isinstance(prompt, list):
        return body | {"prompt": len(prompt)}
    if prompt is not None:
        return body | {"prompt": "text"}
    (message,) = body["messages"]
    (part,) = message["content"]
    return body | {"messages": [message | {"content": [part | {"text": "text"}]}]}


def own(flags: list[str]) -> list[str]:
    return [*LOADGEN, "run", "--compat", "vllm-0.33", *common(), *flags, "--quiet"]


def common() -> list[str]:
    named = [
        "--base-url",
        "URL",
        "--model",
        "m",
        "--tokenizer",
        TOKENIZER,
        "--dataset-name",
        "random",
    ]
    return [
        *named,
        *LENGTHS,
        "--num-prompts",
        str(COUNT),
        "--max-concurrency",
        "1",
        "--disable-tqdm",
    ]


@pytest.mark.parametrize("case", CASES)
async def test_each_body_is_that_of_the_rust_client(case: str) -> None:
    programs = installed(recipes.vllm_rs)
    rust = [str(programs / "vllm-rs"), "bench", "serve", *common(), *CASES[case]]
    theirs, ours = await bodies(rust, own(CASES[case]), env=offline())
    added = {} if "openai-chat" in CASES[case] else ALWAYS
    assert len(ours) == COUNT
    assert [shape(body) for body in ours] == [added | shape(body) for body in theirs]
    if case == "token ids":
        assert {len(body["prompt"]) for body in ours} == {INPUT}


@pytest.mark.parametrize("case", MADE)
async def test_each_body_is_that_of_the_python_client(case: str) -> None:
    python = installed(recipes.vllm_requests) / "python"
    api = "chat" if "openai-chat" in CASES[case] else "completions"
    path = "/v1/chat/completions" if api == "chat" else "/v1/completions"
    request = {
        "prompt": "text",
        "prompt_len": INPUT,
        "output_len": OUTPUT,
        "model": "m",
        "ignore_eos": True,
    }
    client = str(Path(__file__).with_name("vllm_requests.py"))
    theirs, ours = await bodies(
        [str(python), client, f"URL{path}", api, json.dumps(request | MADE[case])],
        own(CASES[case]),
        env=offline(),
    )
    assert [shape(body) for body in ours] == [shape(theirs[0])] * COUNT
