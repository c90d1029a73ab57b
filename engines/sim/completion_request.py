"""Completion request: its fields, parsed from JSON and checked against the engine's limits."""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from loadgen.engines.sim.api_format import CHAT, COMPLETION, ApiFormat
from loadgen.engines.sim.emit import count_tokens
from loadgen.engines.sim.http1 import RequestError
from loadgen.engines.sim.prefix_cache import block_names
from loadgen.engines.sim.settings import PRIORITY, SimSettings
from loadgen.engines.sim.tokenizer import pieces

COMPLETION_TOKENS = 16  # the limit of a completion that names none, by the API's definition
CHAT_TOKENS = 128  # length of a chat's answer without a limit


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """One completion request, checked.

    Attributes:
        prompt_tokens: Tokens of the prompt, chat template included.
        output_tokens: Length of the answer.
        reasoning_tokens: Number of tokens at the start of the answer that are reasoning.
        finish_reason: Why the answer ends: length (at the requested maximum) or stop (by itself).
        seed: Seed of the answer's words.
        stream: Whether tokens are sent as they come.
        include_usage: Whether the stream ends with the token counts.
        continuous_usage: Whether every event has the token counts.
        with_metrics: Whether the counts of the whole answer have its times beside them.
        tokens_per_event: Number of tokens in one event.
        blocks: Names of the prompt's blocks for the prefix cache; None if it is off.
        priority: A lower number is served earlier.
    """

    prompt_tokens: int
    output_tokens: int
    reasoning_tokens: int = 0
    finish_reason: str = "stop"
    seed: int = 0
    stream: bool = False
    include_usage: bool = False
    continuous_usage: bool = False
    with_metrics: bool = False
    tokens_per_event: int = 1
    blocks: tuple[int, ...] | None = None
    priority: int = 0


def check_model(body: dict[str, Any], served: Sequence[str]) -> None:
    """Check the model's name.

    Raises:
        RequestError: The model is not served; the status is 404.
    """
    model = body.get("model", served[0])
    if model not in served:
        message = f"The model `{model}` does not exist. Valid aliases: {', '.join(served)}."
        raise RequestError(404, message, param="model")


@dataclass(frozen=True, slots=True)
class Prompt:
    """The prompt of a request.

    Attributes:
        texts: Its texts.
        ids: The ids of its tokens, if it is given by them.
        images: The addresses of its images.
        is_chat: Whether it has the tokens of the chat template, too.
    """

    texts: list[str] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)
    images: list[str] = field(default_factory=list)
    is_chat: bool = False

    def count(self, settings: SimSettings) -> int:
        """Return the number of its tokens."""
        template = settings.chat_template_tokens if self.is_chat else 0
        images = settings.image_tokens * len(self.images)
        return template + images + len(self.ids) + sum(map(count_tokens, self.texts))

    def blocks(self, settings: SimSettings, count: int) -> tuple[int, ...] | None:
        """Return the names of the blocks of its first `count` tokens; None if the prefix cache
        is off.
        """
        if not settings.enable_prefix_caching:
            return None
        template = [None] * settings.chat_template_tokens if self.is_chat else []
        images = (image for image in self.images for _ in range(settings.image_tokens))
        words = (piece for text in self.texts for piece in pieces(text))
        return block_names([*template, *images, *self.ids, *words][:count])


def parse_chat(body: dict[str, Any]) -> Prompt:
    """Return the texts and images of a chat's messages. A call of a tool is a text: its JSON.

    Raises:
        RequestError: There are no messages, or one is malformed.
    """
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise RequestError(
            400, "messages must be a list with at least one message", param="messages"
        )
    chat = Prompt(is_chat=True)
    for message in messages:
        content, calls = (
            message.get(name) if isinstance(message, dict) else None
            for name in ("content", "tool_calls")
        )
        if calls:
            chat.texts.append(orjson.dumps(calls).decode())
            content = content or []
        for part in content if isinstance(content, list) else [{"text": content}]:
            fields = part if isinstance(part, dict) else {}
            is_image = fields.get("type") == "image_url"
            value = fields.get("image_url" if is_image else "text")
            if is_image and isinstance(value, dict):
                value = value.get("url")
            if not isinstance(value, str):
                message_form = (
                    "each message must be an object with text, or parts of text and "
                    "images, as content"
                )
                raise RequestError(400, message_form, param="messages")
            (chat.images if is_image else chat.texts).append(value)
    return chat


def parse_prompt(body: dict[str, Any]) -> Prompt:
    """Return the prompt of a completion; a list of one prompt is unwrapped.

    Raises:
        RequestError: The prompt is neither a text nor a list of token ids.
    """
    prompt = body.get("prompt")
    if isinstance(prompt, list) and len(prompt) == 1 and isinstance(prompt[0], str | list):
        prompt = prompt[0]
    if isinstance(prompt, str):
        return Prompt(texts=[prompt])
    if isinstance(prompt, list) and all(type(token) is int for token in prompt):
        return Prompt(ids=prompt)
    raise RequestError(400, "prompt must be one text or one list of token ids", param="prompt")


def parse_request(
    body: dict[str, Any], api: ApiFormat, settings: SimSettings, seed: int
) -> CompletionRequest:
    """Return the checked request.

    Args:
        body: The JSON of the request.
        api: The API whose rules it follows.
        settings: Settings of the simulator.
        seed: Seed of the answer, if the request names none.

    Raises:
        RequestError: The model is unknown, a field is invalid, or the context length is exceeded.
    """
    check_model(body, settings.model_names)
    prompt = parse_chat(body) if api is CHAT else parse_prompt(body)
    tokens = prompt.count(settings)
    options = body.get("stream_options")
    if options is not None and not isinstance(options, dict):
        raise RequestError(400, "stream_options must be an object", param="stream_options")
    request_seed = _integer(body, "seed")
    seed = (seed if request_seed is None else request_seed) % 2**64
    limit = _token_limit(body, api, tokens, settings.max_model_len)
    end = _natural_end(body, api, settings.mean_answer_tokens, seed)
    output_tokens = settings.max_model_len - tokens if limit is None else limit
    finish_reason = "length"
    if end is not None and end < output_tokens:
        output_tokens = end
        finish_reason = "stop"
    return CompletionRequest(
        prompt_tokens=tokens,
        output_tokens=output_tokens,
        reasoning_tokens=settings.reasoning_tokens if api is CHAT else 0,
        finish_reason=finish_reason,
        seed=seed,
        stream=_flag(body, "stream"),
        include_usage=_flag(options or {}, "include_usage"),
        continuous_usage=_flag(options or {}, "continuous_usage_stats"),
        with_metrics=settings.enable_per_request_metrics,
        tokens_per_event=settings.tokens_per_event,
        blocks=prompt.blocks(settings, tokens),
        priority=_priority(body, settings),
    )


def _priority(body: dict[str, Any], settings: SimSettings) -> int:
    """Return the priority of a request; one that is not 0 needs the policy, as in vLLM."""
    priority = _integer(body, "priority") or 0
    if priority and settings.scheduling_policy != PRIORITY:
        problem = f"Got priority {priority} but Priority scheduling is not enabled."
        raise RequestError(
            400, f"{problem} Start the server with --scheduling-policy priority.", param="priority"
        )
    return priority


def _token_limit(
    body: dict[str, Any], api: ApiFormat, tokens: int, max_model_len: int
) -> int | None:
    """Return the requested maximum of answer tokens, which must fit with the prompt; None: no
    maximum.
    """
    param = "max_tokens"
    if api is CHAT and body.get("max_completion_tokens") is not None:
        param = "max_completion_tokens"
    limit = _integer(body, param, least=1)
    if limit is None and api is COMPLETION:
        limit = COMPLETION_TOKENS
    if tokens == 0:
        raise RequestError(
            400, "the prompt is empty; send at least one token", param="input_tokens"
        )
    window = f"This model's maximum context length is {max_model_len} tokens"
    if tokens >= max_model_len:
        message = f"{window}, but the prompt alone has {tokens}. Send a shorter prompt."
        raise RequestError(400, message, param="input_tokens")
    if limit is not None and tokens + limit > max_model_len:
        message = (
            f"{window}, but the prompt has {tokens} and {param}={limit} asks for more than "
            "the rest. Lower one."
        )
        raise RequestError(400, message, param=param)
    return limit


def _natural_end(body: dict[str, Any], api: ApiFormat, mean: float, seed: int) -> int | None:
    """Return the length at which the answer ends by itself; None if it goes on to its limit."""
    least = max(1, _integer(body, "min_tokens", least=0) or 0)
    if _flag(body, "ignore_eos"):
        return None
    if mean:
        # Geometric: after each token the answer ends with the same probability.
        drawn = (
            math.log(1.0 - random.Random(seed).random()) / math.log1p(-1.0 / mean)
            if mean > 1
            else 0.0
        )
        return max(least, 1 + math.floor(drawn))
    limited = (
        api is COMPLETION
        or body.get("max_tokens") is not None
        or body.get("max_completion_tokens") is not None
    )
    return None if limited else max(least, CHAT_TOKENS)


def _integer(body: dict[str, Any], param: str, least: int | None = None) -> int | None:
    value = body.get(param)
    if value is None:
        return None
    if type(value) is not int or (least is not None and value < least):
        kind = "an integer" if least is None else f"an integer of at least {least}"
        raise RequestError(400, f"{param} must be {kind}, got {value!r}", param=param)
    return value


def _flag(body: dict[str, Any], param: str) -> bool:
    value = body.get(param)
    if value is not None and not isinstance(value, bool):
        raise RequestError(400, f"{param} must be true or false, got {value!r}", param=param)
    return bool(value)
