"""Events of APIs with a dialect of their own: answers as servers send them, and random chunks."""

from typing import Any

import orjson
from hypothesis import strategies as st

from loadgen.core.dialect import Delta, Dialect
from loadgen.core.event_flags import CHOICE, CONTENT, FINISH, REASONING, USAGE
from loadgen.core.json_fields import count_of, object_of, word_of
from loadgen.workload.endpoints.generation import MESSAGES, RESPONSES
from tests.helpers.response_grammar import Chunks, counts, junk, texts


def event(kind: str, **fields: Any) -> bytes:
    """An event whose type stands in a line of its own, and last in its data, as vLLM writes it."""
    return f"event: {kind}\ndata: ".encode() + orjson.dumps(fields | {"type": kind}) + b"\n\n"


def _last(event: dict[str, Any]) -> Delta:
    details = object_of(event, "details")
    return Delta(
        says=CHOICE | FINISH * bool(details) | USAGE * bool(details),
        finish_reason=word_of(details, "finish_reason"),
        completion_tokens=count_of(details, "generated_tokens"),
    )


# Events without a type, the text in an object, and a last event that is known by one of its
# members.
UNTYPED = Dialect(
    texts={"": {"token.text": CONTENT, "token.thought.text": REASONING}},
    silent=("ping",),
    read=_last,
    decisive=("details",),
)
assert RESPONSES.dialect is not None
assert MESSAGES.dialect is not None
DIALECTS = {"responses": RESPONSES.dialect, "messages": MESSAGES.dialect, "untyped": UNTYPED}
USAGE_OF_RESPONSES = {
    "input_tokens": 7,
    "input_tokens_details": {"cached_tokens": 4},
    "output_tokens": 5,
    "output_tokens_details": {"reasoning_tokens": 2},
    "total_tokens": 12,
}
USAGE_OF_MESSAGES = {"input_tokens": 3, "cache_read_input_tokens": 4, "output_tokens": 4}
PLACE = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
ANSWERS = {
    "responses": event(
        "response.created", response={"status": "in_progress", "usage": None}, sequence_number=0
    )
    + event("response.output_item.added", item={"type": "reasoning", "content": []})
    + event("response.reasoning_text.delta", delta="hm", **PLACE)
    + event("response.reasoning_text.delta", delta=" so", **PLACE)
    + event("response.reasoning_text.done", text="hm so", **PLACE)
    + event("response.output_text.delta", delta="a", logprobs=[], **PLACE)
    + b": ping\n\n"
    + event("response.output_text.delta", delta=' "é"\n', logprobs=[], **PLACE)
    + event("response.function_call_arguments.delta", delta='{"a"', **PLACE)
    + event("response.output_text.done", text='a "é"\n', **PLACE)
    + event(
        "response.completed",
        response={"status": "completed", "error": None, "usage": USAGE_OF_RESPONSES},
    ),
    "messages": event(
        "message_start",
        message={
            "role": "assistant",
            "content": [],
            "usage": {"input_tokens": 7, "output_tokens": 1},
        },
    )
    + event("content_block_start", index=0, content_block={"type": "thinking", "thinking": ""})
    + event("ping")
    + event("content_block_delta", index=0, delta={"type": "thinking_delta", "thinking": "hm"})
    + event("content_block_delta", index=0, delta={"type": "signature_delta", "signature": "f00"})
    + event("content_block_stop", index=0)
    + event("content_block_start", index=1, content_block={"type": "text", "text": ""})
    + event("content_block_delta", index=1, delta={"type": "text_delta", "text": "a"})
    + event("content_block_delta", index=1, delta={"type": "text_delta", "text": ' "é"'})
    + event(
        "content_block_delta", index=2, delta={"type": "input_json_delta", "partial_json": '{"a"'}
    )
    + event(
        "message_delta",
        delta={"stop_reason": "end_turn", "stop_sequence": None},
        usage=USAGE_OF_MESSAGES,
    )
    + event("message_stop"),
    "untyped": b'data:{"index":1,"token":{"id":5,"text":"a"},"details":null}\n\n'
    b'data:{"index":2,"token":{"id":6,"thought":{"text":"hm"}},"details":null}\n\n'
    b'data:{"index":3,"token":{"id":7,"text":"b"},"details":{"finish_reason":"length","generated_tokens":3}}\n\n',
}


@st.composite
def chunks(draw: st.DrawFn, dialect: Dialect) -> dict[str, Any]:
    """The object of one event: of a type of the dialect or of none, its texts in place or not,
    and some junk.
    """
    names = [*dialect.texts, *dialect.silent, *ENDS]
    chunk: dict[str, Any] = draw(
        st.dictionaries(st.sampled_from(["index", "extra", "logprobs"]), junk, max_size=2)
    )
    if draw(st.integers(0, 9)):
        chunk[dialect.type_key] = draw(st.one_of(*[st.sampled_from(names)] * 5, junk))
    where = dialect.texts.get(str(chunk.get(dialect.type_key, "")), {})
    paths = [path for of_type in dialect.texts.values() for path in of_type]
    for path in {*where, *draw(st.lists(st.sampled_from(paths), max_size=2))}:
        _put(chunk, path.split("."), draw(st.one_of(texts, texts, texts, junk)))
    for key in dialect.decisive:
        if draw(st.booleans()):
            chunk[key] = draw(st.one_of(st.none(), st.just(False), ends, junk))
    if draw(st.integers(0, 2)) == 0:
        chunk["response"] = draw(st.one_of(ended_responses, ended_responses, junk))
    if draw(st.integers(0, 2)) == 0:
        message = draw(st.one_of(message_parts, message_parts, junk))
        chunk |= (
            {"message": message}
            if draw(st.booleans()) or not isinstance(message, dict)
            else message
        )
    if draw(st.integers(0, 9)) == 0:
        chunk[draw(st.sampled_from(["error", "object"]))] = draw(
            st.one_of(st.none(), junk, st.just("error"))
        )
    return chunk


ENDS = (
    *("", "error", "unknown", "message_start", "message_delta"),
    *("response.completed", "response.incomplete", "response.failed"),
)
reasons = st.one_of(st.sampled_from(["stop", "length", "completed", "max_output_tokens"]), texts)
ends = st.fixed_dictionaries({}, optional={"finish_reason": reasons, "generated_tokens": counts})
ended_responses: Chunks = st.fixed_dictionaries(
    {},
    optional={
        "status": reasons,
        "error": st.one_of(st.none(), junk),
        "incomplete_details": st.one_of(st.none(), st.fixed_dictionaries({"reason": reasons})),
        "usage": st.one_of(
            st.none(),
            junk,
            st.fixed_dictionaries(
                {},
                optional={
                    "input_tokens": counts,
                    "output_tokens": counts,
                    "input_tokens_details": st.fixed_dictionaries(
                        {}, optional={"cached_tokens": counts}
                    ),
                    "output_tokens_details": st.fixed_dictionaries(
                        {}, optional={"reasoning_tokens": counts}
                    ),
                },
            ),
        ),
    },
)


usages = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(("input_tokens", "output_tokens", "cache_read_input_tokens"), counts)
)
message_parts: Chunks = st.fixed_dictionaries(
    {},
    optional={
        "role": texts,
        "usage": st.one_of(usages, usages, junk),
        "delta": st.fixed_dictionaries(
            {}, optional={"stop_reason": reasons, "stop_sequence": texts}
        ),
    },
)


def _put(holder: dict[str, Any], keys: list[str], value: object) -> None:
    """Put a value where the keys lead, unless something else stands in the way."""
    *inner, last = keys
    for key in inner:
        holder = holder.setdefault(key, {})
        if not isinstance(holder, dict):
            return
    holder.setdefault(last, value)
