"""APIs of a server: the path of each, and the bodies of its requests."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from loadgen.config.settings import RunSettings
from loadgen.config.target import CHAT_ENDPOINT, COMPLETIONS_ENDPOINT, GENERATE_ENDPOINT
from loadgen.errors import BadInput
from loadgen.workload.prompt import Prompt

SAMPLING = ("temperature", "top_p", "top_k", "min_p", "frequency_penalty", "presence_penalty", "repetition_penalty")
SAMPLED = frozenset((*SAMPLING, "ignore_eos"))  # what SGLang's own API takes as sampling parameters

Fields = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Api:
    """One API.

    Attributes:
        path: Its usual path.
        takes_messages: Whether a request has the messages of a chat, not a prompt.
        counts_always: Whether every event has the token counts so far, without being asked for them.
        body: Makes the body of a request from a prompt, the model's name and further fields; streaming is added.
    """

    path: str
    takes_messages: bool
    counts_always: bool
    body: Callable[[Prompt, str, Fields], Fields]


def api_of(settings: RunSettings) -> Api:
    """Return the API of the settings: by backend, else by path."""
    if settings.backend is None:
        path = settings.endpoint or ""
        return next((api for api in (CHAT, GENERATE) if path.endswith(api.path.removeprefix("/v1"))), COMPLETIONS)
    return BY_BACKEND.get(settings.backend, COMPLETIONS)


def backend_of(settings: RunSettings) -> str:
    """Return the backend of the settings, or the one that their path means."""
    own = api_of(settings)
    return settings.backend or next((name for name, api in BY_BACKEND.items() if api is own), "openai")


def _chat(prompt: Prompt, model: str, fields: Fields) -> Fields:
    messages = prompt.messages or [{"role": "user", "content": prompt.text}]
    return {"model": model, "messages": messages, "max_completion_tokens": prompt.output_tokens} | fields


def _completions(prompt: Prompt, model: str, fields: Fields) -> Fields:
    return {"model": model, "prompt": _text(prompt), "max_tokens": prompt.output_tokens} | fields


def _generate(prompt: Prompt, model: str, fields: Fields) -> Fields:
    """Make a body of SGLang's own API, which names no model and takes sampling parameters apart."""
    sampling = {name: value for name, value in fields.items() if name in SAMPLED}
    others = {name: value for name, value in fields.items() if name not in SAMPLED}
    sampling = {"max_new_tokens": prompt.output_tokens} | sampling | others.pop("sampling_params", {})
    return {"text": _text(prompt), "sampling_params": sampling} | others


def _text(prompt: Prompt) -> str:
    """Return the text of a prompt.

    Raises:
        BadInput: It is a chat.
    """
    if prompt.messages:
        raise BadInput("--endpoint", f"{prompt.source} is a chat", "use a chat endpoint: --backend openai-chat")
    return prompt.text


CHAT = Api(CHAT_ENDPOINT, takes_messages=True, counts_always=False, body=_chat)
COMPLETIONS = Api(COMPLETIONS_ENDPOINT, takes_messages=False, counts_always=False, body=_completions)
GENERATE = Api(GENERATE_ENDPOINT, takes_messages=False, counts_always=True, body=_generate)
BY_BACKEND = {"openai-chat": CHAT, "sglang-native": GENERATE}  # all others are completions
