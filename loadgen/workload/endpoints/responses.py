"""Responses of OpenAI: events with a type, the counts with the last one, and no [DONE]."""

from typing import Any

from loadgen.core.dialect import Delta, Dialect
from loadgen.core.event_flags import CHOICE, CONTENT, FINISH, OTHER, REASONING, TOOL, USAGE
from loadgen.core.json_fields import count_of, object_of, to_json, word_of
from loadgen.workload.endpoints.api import Api, Fields, text_of
from loadgen.workload.prompt import Prompt

ENDS = ("response.completed", "response.incomplete")
TEXTS = {
    "response.output_text.delta": CONTENT,
    "response.reasoning_text.delta": REASONING,
    "response.reasoning_summary_text.delta": REASONING,
    "response.refusal.delta": OTHER,
    "response.function_call_arguments.delta": OTHER | TOOL,
    "response.custom_tool_call_input.delta": OTHER | TOOL,
    "response.mcp_call_arguments.delta": OTHER | TOOL,
    "response.code_interpreter_call_code.delta": OTHER | TOOL,
}
# What a text belongs to begins and ends with an event of its own, and each text comes once more as a whole.
PARTS = ("output_item", "content_part", "reasoning_summary_part", "reasoning_part")
SILENT = (
    *("response.created", "response.queued", "response.in_progress", "response.output_text.annotation.added"),
    *(name.removesuffix("delta") + "done" for name in TEXTS),
    *(f"response.{part}.{step}" for part in PARTS for step in ("added", "done")),
)


def _read(event: dict[str, Any]) -> Delta:
    name, answer = event.get("type"), object_of(event, "response")
    if name == "error" or name == "response.failed":
        return Delta(error=to_json(answer.get("error") or event))
    if name not in ENDS:
        return Delta()
    usage = object_of(answer, "usage")
    # An answer that is cut at its limit has the status incomplete, also where the event is response.completed.
    cut = word_of(object_of(answer, "incomplete_details"), "reason")
    return Delta(
        says=CHOICE | FINISH | USAGE * (answer.get("usage") is not None),
        finish_reason=cut or word_of(answer, "status") or name.removeprefix("response."),
        prompt_tokens=count_of(usage, "input_tokens"),
        completion_tokens=count_of(usage, "output_tokens"),
        cached_tokens=count_of(object_of(usage, "input_tokens_details"), "cached_tokens"),
        reasoning_tokens=count_of(object_of(usage, "output_tokens_details"), "reasoning_tokens"),
    )


def _body(prompt: Prompt, model: str, fields: Fields) -> Fields:
    """Make a body. Nothing is stored: vLLM would keep every answer for as long as it runs."""
    asked = [*prompt.messages] or text_of(prompt)
    return {"model": model, "input": asked, "max_output_tokens": prompt.output_tokens, "store": False} | fields


RESPONSES = Api(
    "/v1/responses",
    _body,
    takes_messages=True,
    dialect=Dialect(texts={name: {"delta": flags} for name, flags in TEXTS.items()}, silent=SILENT, read=_read),
    ending="/responses",
    length_field="max_output_tokens",
    prompt_fields=frozenset(("input",)),
)
