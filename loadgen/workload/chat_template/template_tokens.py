"""Template tokens: tokens that the chat template adds to a message, as the server counts them."""

from typing import Any

import orjson
from msgspec import Struct

from loadgen.errors import BadInput, Unreachable, setting
from loadgen.util import http_client
from loadgen.workload.prompt import Prompt, user_message
from loadgen.workload.target import Target

PROBE = "Hello"  # the text of the one message that a server is asked to count
KWARGS = "chat_template_kwargs"  # field of a request: further variables of the template
GENERATION_PROMPT = "add_generation_prompt"  # whether the text ends with the start of an answer
# Fields of a request that change the tokens of the template.
OPTIONS = (KWARGS, "tools", GENERATION_PROMPT)
INPUT_LEN_COUNTS = setting.input_len_counts


class TemplateTokens(Struct, frozen=True):
    """Tokens of a chat with one message beyond those of its text with the tokenizer's special
    tokens.

    Attributes:
        tokens: The number; below 0 if a template leaves special tokens out.
        source: The origin of the number, for people.
    """

    tokens: int
    source: str


def template_options(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a request that change the output of the chat template."""
    return {name: fields[name] for name in OPTIONS if name in fields}


async def ask_server(target: Target, base_url: str, raw: int) -> TemplateTokens:
    """Ask the server for its template tokens.

    It tokenizes a chat, or answers one with a single token, outside the records of the run.

    Args:
        target: The endpoint, with the fields of every request.
        base_url: Scheme, host and port.
        raw: Tokens of PROBE, with the tokenizer's special tokens.

    Raises:
        BadInput: The server does not count the tokens of a chat.
    """
    methods = {
        "the server's /tokenize": _by_tokenize,
        "the server's /apply-template and /tokenize": _by_apply_template,
        "the usage of one request": _by_usage,
    }
    for source, method in methods.items():
        try:
            counted = await method(target, base_url)
        except Unreachable:
            continue
        if type(counted) is int and counted > 0:
            return TemplateTokens(counted - raw, source)
    problem = (
        f"the tokenizer has no chat template, and {base_url} does not count the tokens of a chat"
    )
    raise BadInput(
        INPUT_LEN_COUNTS,
        problem,
        "give the folder of a tokenizer with its chat template, or use raw",
    )


async def _by_tokenize(target: Target, base_url: str) -> Any:
    """Use /tokenize of vLLM."""
    body = {"model": target.model, GENERATION_PROMPT: target.generates} | _chat(target)
    return (await _post(target, f"{base_url}/tokenize", body)).get("count")


async def _by_apply_template(target: Target, base_url: str) -> Any:
    """Use /apply-template and /tokenize of llama.cpp."""
    text = (await _post(target, f"{base_url}/apply-template", _chat(target))).get("prompt")
    if not isinstance(text, str):
        return None
    body = {"content": text, "add_special": True, "parse_special": True}
    tokens = (await _post(target, f"{base_url}/tokenize", body)).get("tokens")
    return len(tokens) if isinstance(tokens, list) else None


async def _by_usage(target: Target, base_url: str) -> Any:
    body = orjson.loads(target.body(Prompt(PROBE, 1, 1, "probe"))) | {"stream": False}
    body.pop("stream_options", None)
    usage = (await _post(target, target.url, body)).get("usage")
    return (
        usage.get("prompt_tokens", usage.get("input_tokens")) if isinstance(usage, dict) else None
    )


def _chat(target: Target) -> dict[str, Any]:
    return {"messages": [user_message(PROBE)]} | template_options(target.fields)


async def _post(target: Target, url: str, body: dict[str, Any]) -> dict[str, Any]:
    reply = await http_client.send_json(
        url, orjson.dumps(body), headers=target.headers, route=target.route
    )
    answer = reply.json() if reply.status == 200 else None
    return answer if isinstance(answer, dict) else {}
