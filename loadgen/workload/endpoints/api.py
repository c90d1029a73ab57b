"""`Api`: the path of one API of a server, the bodies of its requests, and the events of its
answers.
"""

from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import Any

from msgspec import Struct

from loadgen.core.dialect import Dialect
from loadgen.errors import BadInput, setting
from loadgen.workload.prompt import Prompt

# Settings that are fields of every request.
SAMPLING = (
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "frequency_penalty",
    "presence_penalty",
    "repetition_penalty",
)

LENGTHS = ("max_completion_tokens", "max_tokens")  # fields of a body that limit its answer
LORA_PATH = "lora_path"  # field of a body in which SGLang takes the adapter

Fields = dict[str, Any]


class Counts(Enum):
    """When a server counts the tokens of an answer."""

    AT_END = auto()  # at its end, without being asked
    WITH_EVENTS = auto()  # with every event, without being asked
    AS_ASKED = auto()  # at its end or with every event, as `stream_options` ask


class Api(Struct, frozen=True):
    """One API: what `--backend` chooses.

    An object of another package is an entry point of the group `loadgen.endpoints`
    (docs/add-endpoint.md).

    Attributes:
        path: Its usual path.
        body: Makes the body of a request from a prompt, the model's name and further fields: those
            of the sampling settings, of `--extra-body`, and `stream: true`.
        takes_messages: Whether a request has the messages of a chat, so that the server applies its
            chat template.
        counts: When the server counts the tokens of an answer.
        dialect: The events of its answers; None: those of chat completions, completions or
            /generate.
        ending: How each of its paths ends, and no path of another API; empty: its path may be any.
        length_field: The field of a body, or of its sampling parameters, that limits the answer;
            empty: there is none.
        needs_length: Whether a request without that field is refused.
        prompt_fields: Fields of a body that hold the prompt, beside `messages` and `prompt`.
        headers: Headers of every request.
        takes_images: Whether a request may have images.
        takes_token_ids: Whether a prompt may be token ids in place of a text.
        key_header: The header with the API key, beside the bearer token; None: there is none.
        adapter_field: The field of a body that names a LoRA adapter.
        sign: Makes the headers that each request alone has, such as a signature, when it is sent,
            of its method, URL and body; None: there are none.
    """

    path: str
    body: Callable[[Prompt, str, Fields], Fields]
    takes_messages: bool = False
    counts: Counts = Counts.AT_END
    dialect: Dialect | None = None
    ending: str = ""
    length_field: str = "max_tokens"
    needs_length: bool = False
    prompt_fields: frozenset[str] = frozenset()
    headers: Mapping[str, str] = {}
    key_header: str | None = None
    takes_images: bool = False
    takes_token_ids: bool = False
    adapter_field: str = "model"
    sign: Callable[[str, str, bytes], Mapping[str, str]] | None = None


def messages_of(prompt: Prompt) -> list[Fields]:
    """Return the prompt as the messages of a chat.

    Raises:
        BadInput: It is several texts.
    """
    refuse_several(prompt)
    return [*prompt.messages] or [{"role": "user", "content": prompt.text}]


def text_of(prompt: Prompt) -> str:
    """Return the text of a prompt.

    Raises:
        BadInput: It is a chat, or several texts.
    """
    if prompt.messages:
        problem = "its prompts are chats, and this API takes no messages"
        raise BadInput(
            setting.dataset_name, problem, f"use a chat endpoint: {setting.backend} openai-chat"
        )
    refuse_several(prompt)
    return prompt.text


def asked_of(prompt: Prompt) -> str | tuple[int, ...]:
    """Return the text of a prompt, or the token ids in its place.

    Raises:
        BadInput: It is a chat, or several texts.
    """
    return prompt.token_ids or text_of(prompt)


def refuse_several(prompt: Prompt) -> None:
    """Refuse a prompt of several texts.

    Raises:
        BadInput: It is one.
    """
    if prompt.texts:
        problem = "its prompts are several texts each, and this API takes one"
        remedy = f"use {setting.backend} openai-embeddings, or another API that takes them"
        raise BadInput(setting.dataset_name, problem, remedy)
