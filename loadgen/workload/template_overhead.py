"""Overhead: the tokens that a server counts of a chat beyond those of its text, and who says so."""

from dataclasses import dataclass
from typing import Any

import orjson

from loadgen.errors import BadInput, Unreachable
from loadgen.util import http_client
from loadgen.workload.prompt import Prompt
from loadgen.workload.target import Target

PROBE = "Hello"  # one message of this text is what a server is asked about
KWARGS = "chat_template_kwargs"  # of a request: an object of further things to tell its template
OPTIONS = (KWARGS, "tools", "add_generation_prompt")  # of a request: all that changes the template's tokens
FIELD = "--input-len-counts"


@dataclass(frozen=True, slots=True)
class Overhead:
    """What a chat of one message has beyond the tokens of its text, the tokenizer's special ones included.

    Attributes:
        tokens: How many; below 0 where a template leaves special tokens out.
        source: How that is known, for people.
    """

    tokens: int
    source: str


def template_options(fields: dict[str, Any]) -> dict[str, Any]:
    """Of a request's fields those that change what the chat template makes of its messages."""
    return {name: fields[name] for name in OPTIONS if name in fields}


async def ask(target: Target, base_url: str, raw: int) -> Overhead:
    """Learn the overhead from the server: it tokenizes a chat, or answers one with a single token off the record.

    Args:
        target: What is asked, with the fields that every request will have.
        base_url: Scheme, host and port.
        raw: Tokens of PROBE, the tokenizer's special ones included.

    Raises:
        BadInput: The server does not say.
    """
    ways = {
        "the server's /tokenize": _tokenized,
        "the server's /apply-template and /tokenize": _templated,
        "the usage of one request": _answered,
    }
    for source, way in ways.items():
        try:
            counted = await way(target, base_url)
        except Unreachable:
            continue
        if type(counted) is int and counted > 0:
            return Overhead(counted - raw, source)
    problem = f"no chat template lies beside the tokenizer, and {base_url} does not count the tokens of a chat"
    raise BadInput(FIELD, problem, "name the folder of a tokenizer with its template, or leave it at raw")


async def _tokenized(target: Target, base_url: str) -> Any:
    """As vLLM does it."""
    asked = {"model": target.model, "add_generation_prompt": True} | _chat(target)
    return (await _post(target, f"{base_url}/tokenize", asked)).get("count")


async def _templated(target: Target, base_url: str) -> Any:
    """As llama.cpp does it."""
    text = (await _post(target, f"{base_url}/apply-template", _chat(target))).get("prompt")
    if not isinstance(text, str):
        return None
    asked = {"content": text, "add_special": True, "parse_special": True}
    tokens = (await _post(target, f"{base_url}/tokenize", asked)).get("tokens")
    return len(tokens) if isinstance(tokens, list) else None


async def _answered(target: Target, base_url: str) -> Any:
    asked = orjson.loads(target.body(Prompt(PROBE, 1, 1, "probe"))) | {"stream": False}
    del asked["stream_options"]
    usage = (await _post(target, target.url, asked)).get("usage")
    return usage.get("prompt_tokens") if isinstance(usage, dict) else None


def _chat(target: Target) -> dict[str, Any]:
    """A chat of the probe alone, with what changes the template."""
    return {"messages": [{"role": "user", "content": PROBE}]} | template_options(target.fields)


async def _post(target: Target, url: str, asked: dict[str, Any]) -> dict[str, Any]:
    """The object that the server answers; an empty one where it answers anything else."""
    reply = await http_client.post(url, orjson.dumps(asked), headers=target.headers, verify_tls=target.verify_tls)
    told = reply.json() if reply.status == 200 else None
    return told if isinstance(told, dict) else {}
