"""`/completion`, llama.cpp's own API: texts and counts with each event, and no [DONE]."""

from typing import Any

from loadgen.config.backends import BACKENDS
from loadgen.core.dialect import Delta, Dialect
from loadgen.core.event_flags import CHOICE, CONTENT, FINISH, USAGE
from loadgen.core.json_fields import count_of, object_of, text_of, word_of
from loadgen.core.server_times import in_event
from loadgen.workload.endpoints.api import Api, Fields, asked_of
from loadgen.workload.prompt import Prompt

BACKEND = BACKENDS["llama.cpp-native"]
RENAMED = {"repetition_penalty": "repeat_penalty"}  # sampling parameters, as it calls them


def _body(prompt: Prompt, model: str, fields: Fields) -> Fields:
    """Make a body; a prompt is a text or token ids."""
    named = {RENAMED.get(name, name): value for name, value in fields.items()}
    limit = {"n_predict": prompt.output_tokens}
    return {"model": model, "prompt": asked_of(prompt)} | limit | named


def _read_last(event: dict[str, Any]) -> Delta:
    text = text_of(event, "content")
    return Delta(
        CONTENT if text else 0,
        CHOICE | FINISH | USAGE,
        text=text,
        answer=text,
        finish_reason=word_of(event, "stop_type"),
        matched_stop=word_of(event, "stopping_word"),
        prompt_tokens=count_of(event, "tokens_evaluated"),
        completion_tokens=count_of(event, "tokens_predicted"),
        cached_tokens=count_of(object_of(event, "timings"), "cache_n"),
        times=in_event(event, None),
    )


COMPLETION = Api(
    BACKEND.path,
    _body,
    dialect=Dialect(
        texts={"": {"content": CONTENT}}, silent=(), read=_read_last, decisive=("stop",)
    ),
    ending=BACKEND.ending,
    length_field="n_predict",
    takes_token_ids=True,
)
