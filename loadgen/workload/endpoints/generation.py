"""APIs whose answers are generated tokens.

- Chat completions and completions of OpenAI.
- Responses of OpenAI: events with a type, the counts with the last one, and no [DONE].
- Messages of Anthropic: blocks of text, thinking and tool calls, the counts at both ends, and no
  [DONE].
- `/generate`, SGLang's own API.
"""

from typing import Any

from loadgen.config.backends import BACKENDS
from loadgen.core.dialect import Delta, Dialect
from loadgen.core.event_flags import CHOICE, CONTENT, FINISH, OTHER, REASONING, ROLE, TOOL, USAGE
from loadgen.core.json_fields import count_of, object_of, to_json, word_of
from loadgen.workload.endpoints.api import (
    LORA_PATH,
    SAMPLING,
    Api,
    Counts,
    Fields,
    asked_of,
    messages_of,
    text_of,
)
from loadgen.workload.image import images
from loadgen.workload.prompt import Prompt

MESSAGE_START, MESSAGE_END = "message_start", "message_delta"
SAMPLED = frozenset((*SAMPLING, "ignore_eos"))  # what it takes as sampling parameters
ANTHROPIC_VERSION = "2023-06-01"  # of the API; servers other than Anthropic's do not look at it
MESSAGE_TEXTS = {
    "delta.text": CONTENT,
    "delta.thinking": REASONING,
    "delta.partial_json": OTHER | TOOL,
}
# Input tokens that were in the cache are not among `input_tokens`.
CACHED = "cache_read_input_tokens"
INPUT = ("input_tokens", "cache_creation_input_tokens", CACHED)
RESPONSE_ENDS = ("response.completed", "response.incomplete", "response.cancelled")
RESPONSE_TEXTS = {
    "response.output_text.delta": CONTENT,
    "response.reasoning_text.delta": REASONING,
    "response.reasoning_summary_text.delta": REASONING,
    "response.refusal.delta": OTHER,
    "response.function_call_arguments.delta": OTHER | TOOL,
    "response.custom_tool_call_input.delta": OTHER | TOOL,
    "response.mcp_call_arguments.delta": OTHER | TOOL,
    "response.code_interpreter_call_code.delta": OTHER | TOOL,
}
# What a text belongs to begins and ends with an event of its own, and each text comes once more as
# a whole.
RESPONSE_PARTS = ("output_item", "content_part", "reasoning_summary_part", "reasoning_part")
SILENT_RESPONSE_EVENTS = (
    "response.created",
    "response.queued",
    "response.in_progress",
    "response.output_text.annotation.added",
    *(name.removesuffix("delta") + "done" for name in RESPONSE_TEXTS),
    *(f"response.{part}.{step}" for part in RESPONSE_PARTS for step in ("added", "done")),
)


def _chat(prompt: Prompt, model: str, fields: Fields) -> Fields:
    return {
        "model": model,
        "messages": messages_of(prompt),
        "max_completion_tokens": prompt.output_tokens,
    } | fields


def _completions(prompt: Prompt, model: str, fields: Fields) -> Fields:
    return {"model": model, "prompt": asked_of(prompt), "max_tokens": prompt.output_tokens} | fields


def _response_body(prompt: Prompt, model: str, fields: Fields) -> Fields:
    """Make a body. Nothing is stored: vLLM would keep every answer for as long as it runs."""
    content = [*prompt.messages] or text_of(prompt)
    return {
        "model": model,
        "input": content,
        "max_output_tokens": prompt.output_tokens,
        "store": False,
    } | fields


def _read_response_event(event: dict[str, Any]) -> Delta:
    name, answer = event.get("type"), object_of(event, "response")
    if name == "response.failed":
        return Delta(error=to_json(answer.get("error") or event))
    if name not in RESPONSE_ENDS:
        return Delta()
    usage = object_of(answer, "usage")
    # An answer that is cut at its limit has the status incomplete, also where the event is
    # response.completed.
    cut = word_of(object_of(answer, "incomplete_details"), "reason")
    return Delta(
        says=CHOICE | FINISH | USAGE * (answer.get("usage") is not None),
        finish_reason=cut or word_of(answer, "status") or name.removeprefix("response."),
        prompt_tokens=count_of(usage, "input_tokens"),
        completion_tokens=count_of(usage, "output_tokens"),
        cached_tokens=count_of(object_of(usage, "input_tokens_details"), "cached_tokens"),
        reasoning_tokens=count_of(object_of(usage, "output_tokens_details"), "reasoning_tokens"),
    )


def _message_body(prompt: Prompt, model: str, fields: Fields) -> Fields:
    """Make a body; messages of the system stand apart."""
    messages = messages_of(prompt)
    system = [message["content"] for message in messages if message["role"] == "system"]
    body = {"model": model, "max_tokens": prompt.output_tokens}
    if system:
        body["system"] = (
            system[0] if len(system) == 1 else [{"type": "text", "text": text} for text in system]
        )
    return (
        body
        | {"messages": [message for message in messages if message["role"] != "system"]}
        | fields
    )


def _read_message_event(event: dict[str, Any]) -> Delta:
    name = event.get("type")
    if name not in (MESSAGE_START, MESSAGE_END):
        return Delta()
    message, ended = (
        object_of(event, "message") if name == MESSAGE_START else event,
        object_of(event, "delta"),
    )
    usage, reason = object_of(message, "usage"), word_of(ended, "stop_reason")
    return Delta(
        says=CHOICE
        | ROLE * ("role" in message)
        | FINISH * (reason is not None)
        | USAGE * (message.get("usage") is not None),
        finish_reason=reason,
        matched_stop=word_of(ended, "stop_sequence"),
        # A server that does not know it yet says 0.
        prompt_tokens=sum(max(count_of(usage, key), 0) for key in INPUT) or -1,
        # At the start it is that of the first token, or 0.
        completion_tokens=count_of(usage, "output_tokens") if name == MESSAGE_END else -1,
        cached_tokens=count_of(usage, CACHED),
    )


def _generate(prompt: Prompt, model: str, fields: Fields) -> Fields:
    """Make a body, which names no model and has its sampling parameters and images apart.

    The text of a prompt with images has placeholders for them.
    """
    sampling = {name: value for name, value in fields.items() if name in SAMPLED}
    others = {name: value for name, value in fields.items() if name not in SAMPLED}
    sampling = (
        {"max_new_tokens": prompt.output_tokens} | sampling | others.pop("sampling_params", {})
    )
    if pictures := list(images(prompt.messages)):
        return {"text": prompt.text, "sampling_params": sampling, "image_data": pictures} | others
    return {
        "input_ids" if prompt.token_ids else "text": asked_of(prompt),
        "sampling_params": sampling,
    } | others


CHAT = Api(
    BACKENDS["openai-chat"].path,
    _chat,
    takes_messages=True,
    counts=Counts.AS_ASKED,
    ending="/chat/completions",
    length_field="max_completion_tokens",
    takes_images=True,
)
COMPLETIONS = Api(
    BACKENDS["openai"].path, _completions, counts=Counts.AS_ASKED, takes_token_ids=True
)
RESPONSES = Api(
    BACKENDS["openai-responses"].path,
    _response_body,
    takes_messages=True,
    dialect=Dialect(
        texts={name: {"delta": flags} for name, flags in RESPONSE_TEXTS.items()},
        silent=SILENT_RESPONSE_EVENTS,
        read=_read_response_event,
    ),
    ending="/responses",
    length_field="max_output_tokens",
    prompt_fields=frozenset(("input",)),
)
MESSAGES = Api(
    BACKENDS["anthropic"].path,
    _message_body,
    takes_messages=True,
    dialect=Dialect(
        texts={"content_block_delta": MESSAGE_TEXTS},
        silent=("content_block_start", "content_block_stop", "message_stop", "ping"),
        read=_read_message_event,
    ),
    ending="/messages",
    needs_length=True,
    headers={"anthropic-version": ANTHROPIC_VERSION},
    key_header="x-api-key",
)
GENERATE = Api(
    BACKENDS["sglang-native"].path,
    _generate,
    counts=Counts.WITH_EVENTS,
    ending="/generate",
    takes_images=True,
    takes_token_ids=True,
    length_field="max_new_tokens",
    prompt_fields=frozenset(("text", "input_ids")),
    adapter_field=LORA_PATH,
)
