"""API formats: the JSON of chat completions and completions, as vLLM writes it, and of SGLang's own
API.

The simulator and the servers of `loadgen.testing` write answers with these writers and those of
`typed_format`.
"""

from dataclasses import dataclass
from typing import Any

import orjson

from loadgen.engines.sim.http1 import RequestError, error_body

DONE = b"data: [DONE]\n\n"
MAX_NEW_TOKENS = 128  # SGLang's default


@dataclass(frozen=True, slots=True)
class ApiFormat:
    """The JSON of one API's answers.

    Attributes:
        id_prefix: Prefix of the answer's id.
        whole: The field `object` of an answer in one piece.
        part: The field `object` of an event.
        role: The choice of the event before the first token; empty: there is no such event.
        token: A choice up to the token's text.
        reasoning: A choice up to the text of a reasoning token; empty: the API has none.
        token_end: The rest of the choice up to the finish reason.
        unfinished: The rest after `token_end`, if the answer goes on.
        finish: The choice of an event without a token, up to the finish reason.
    """

    id_prefix: str
    whole: str
    part: str
    role: str
    token: str
    reasoning: str
    token_end: str
    unfinished: str
    finish: str


CHAT = ApiFormat(
    id_prefix="chatcmpl-",
    whole="chat.completion",
    part="chat.completion.chunk",
    role='{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}',
    token='{"index":0,"delta":{"content":"',
    reasoning='{"index":0,"delta":{"reasoning":"',
    token_end='"},"logprobs":null,"finish_reason":',
    unfinished="null}",
    finish='{"index":0,"delta":{"content":""},"logprobs":null,"finish_reason":',
)
COMPLETION = ApiFormat(
    id_prefix="cmpl-",
    whole="text_completion",
    part="text_completion",
    role="",
    token='{"index":0,"text":"',
    reasoning="",
    token_end='","logprobs":null,"finish_reason":',
    unfinished='null,"stop_reason":null}',
    finish='{"index":0,"text":"","logprobs":null,"finish_reason":',
)


@dataclass(frozen=True, slots=True)
class Usage:
    """The token counts of one answer.

    Attributes:
        prompt_tokens: Tokens of the prompt.
        completion_tokens: Tokens of the answer.
        reasoning_tokens: Those of them that are reasoning.
        cached_tokens: Tokens of the prompt that were in the prefix cache; None: there is none.
        metrics: The times of the answer, in an object beside the counts; None: they are not said.
    """

    prompt_tokens: int
    completion_tokens: int
    reasoning_tokens: int = 0
    cached_tokens: int | None = None
    metrics: dict[str, float | None] | None = None

    @property
    def beside(self) -> dict[str, Any]:
        """What stands beside the counts of a whole answer."""
        return {} if self.metrics is None else {"metrics": self.metrics}

    def json(self) -> dict[str, Any]:
        """Return the counts as the API's object."""
        usage: dict[str, Any] = {
            "prompt_tokens": self.prompt_tokens,
            "total_tokens": self.prompt_tokens + self.completion_tokens,
            "completion_tokens": self.completion_tokens,
        }
        if self.cached_tokens is not None:
            usage["prompt_tokens_details"] = {"cached_tokens": self.cached_tokens}
        if self.reasoning_tokens:
            usage["completion_tokens_details"] = {"reasoning_tokens": self.reasoning_tokens}
        return usage


def event(**fields: Any) -> bytes:
    """Return an event with a JSON object as data."""
    return b"data: " + orjson.dumps(fields) + b"\n\n"


class ResponseWriter:
    """Writes the events or the single response of one answer: a chat, unless a subclass has another
    API.

    Args:
        answer_id: Unique part of the answer's id.
        created: Unix time, s.
        model: Name of the model, as JSON.
        reason: Why the answer ends: length or stop.

    Attributes:
        api: The API of OpenAI whose rules the requests follow.
        done: The event that ends a stream; empty: the API has none.
        counts_at_end: Whether the finish reason has events of its own, with the token counts;
            otherwise the event of the last token has it, and the counts have an event of their own.
    """

    api = CHAT
    done = DONE
    counts_at_end = False

    def __init__(self, answer_id: str, created: int, model: str, reason: str) -> None:
        self._answer_id = answer_id
        self._created = created
        self._model = model
        self._reason = reason
        self._id = self.api.id_prefix + answer_id
        self._opening = (
            f'data: {{"id":"{self._id}","object":"{self.api.part}",'
            f'"created":{created},"model":{model},"choices":['
        )

    @staticmethod
    def as_openai(body: dict[str, Any], model: str) -> dict[str, Any]:
        """Return the body of a request as one of `api` that asks for the same.

        Args:
            body: The body.
            model: Name of the served model.

        Raises:
            RequestError: A field that the API needs is missing or invalid.
        """
        return body

    @property
    def token_head(self) -> bytes:
        """The event of an answer token, up to the text."""
        return (self._opening + self.api.token).encode()

    @property
    def reasoning_head(self) -> bytes:
        """The event of a reasoning token, up to the text."""
        return (self._opening + self.api.reasoning).encode()

    def token_tail(self, *, last: bool = False) -> bytes:
        """Return the rest of a token's event; the last token's event has the finish reason."""
        return f"{self._complete_choice(self.api.token_end, last=last)}]}}\n\n".encode()

    def token(self, text: str) -> bytes:
        """Return the event of an answer token, which is not the last; `text` needs no escaping
        in JSON.
        """
        return self.token_head + text.encode() + self.token_tail()

    def counted_tail(self, prompt_tokens: int, *, last: bool = False) -> tuple[bytes, bytes, bytes]:
        """Return the rest of a token's event with usage, in three parts around its two token
        counts.

        Args:
            prompt_tokens: Tokens of the prompt.
            last: Whether the event has the finish reason.
        """
        choice = self._complete_choice(self.api.token_end, last=last)
        tail = f'{choice}],"usage":{{"prompt_tokens":{prompt_tokens},"total_tokens":'
        return tail.encode(), b',"completion_tokens":', b"}}\n\n"

    def role(self, usage: Usage | None = None) -> bytes:
        """Return the event before the first token, with the counts if they are given; empty if
        the API has none.
        """
        return self._event(self.api.role, usage) if self.api.role else b""

    def finish(self, usage: Usage | None = None) -> bytes:
        """Return the events with the finish reason, with the counts if they are given."""
        return self._event(self._complete_choice(self.api.finish, last=True), usage)

    def usage(self, usage: Usage) -> bytes:
        """Return the event with only the token counts; empty if the API has them at the end."""
        if self.counts_at_end:
            return b""
        event = self._event("", usage)
        if usage.metrics is None:
            return event
        return event.removesuffix(b"}\n\n") + b"," + orjson.dumps(usage.beside)[1:] + b"\n\n"

    def error(self, message: str) -> bytes:
        """Return the event of an error that ends the stream."""
        return b"data: " + error_body(message, 500) + b"\n\n"

    def _complete_choice(self, choice: str, *, last: bool) -> str:
        return choice + (f'"{self._reason}","stop_reason":null}}' if last else self.api.unfinished)

    def _event(self, choice: str, usage: Usage | None) -> bytes:
        counts = "" if usage is None else f',"usage":{orjson.dumps(usage.json()).decode()}'
        return f"{self._opening}{choice}]{counts}}}\n\n".encode()

    def whole(self, content: str, reasoning: str | None, usage: Usage) -> bytes:
        """Return the body of an answer in one piece.

        Args:
            content: Text of the answer.
            reasoning: Text of the reasoning; None: there is none.
            usage: The token counts.
        """
        choice: dict[str, Any] = {
            "index": 0,
            "logprobs": None,
            "finish_reason": self._reason,
            "stop_reason": None,
        }
        if self.api is CHAT:
            choice["message"] = {"role": "assistant", "content": content, "reasoning": reasoning}
        else:
            choice["text"] = content
        return orjson.dumps(
            {
                "id": self._id,
                "object": self.api.whole,
                "created": self._created,
                "model": orjson.loads(self._model),
                "choices": [choice],
                "usage": usage.json(),
                **usage.beside,
            }
        )


class CompletionWriter(ResponseWriter):
    """Writes the answer of a completion."""

    api = COMPLETION


class GenerateWriter(ResponseWriter):
    """Writes the answer of SGLang's own API, which has neither a time nor the name of a model.

    Each event has the text of its own tokens, as from SGLang with incremental streaming, and the
    counts so far.
    """

    api = COMPLETION
    token_head = b'data: {"text":"'

    @staticmethod
    def as_openai(body: dict[str, Any], model: str) -> dict[str, Any]:
        """Return the body of a completions request that asks for the same.

        Raises:
            RequestError: There is no prompt, or the sampling parameters are no object.
        """
        sampling = body.get("sampling_params") or {}
        if not isinstance(sampling, dict):
            raise RequestError(400, "sampling_params must be an object", param="sampling_params")
        prompt = body.get("text") if body.get("input_ids") is None else body["input_ids"]
        if prompt is None:
            raise RequestError(400, "text or input_ids must be given", param="text")
        return {
            "model": body.get("lora_path") or model,
            "prompt": prompt,
            "max_tokens": sampling.get("max_new_tokens", MAX_NEW_TOKENS),
            "min_tokens": sampling.get("min_new_tokens"),
            "ignore_eos": sampling.get("ignore_eos"),
            "stream": body.get("stream"),
            "stream_options": {"continuous_usage_stats": True},
        }

    def counted_tail(self, prompt_tokens: int, *, last: bool = False) -> tuple[bytes, bytes, bytes]:
        """Return the rest of a token's event, in three parts around its two token counts."""
        meta = orjson.dumps(self._meta(last=last) | {"prompt_tokens": prompt_tokens}).removesuffix(
            b"}"
        )
        return b'","meta_info":' + meta + b',"total_tokens":', b',"completion_tokens":', b"}}\n\n"

    def finish(self, usage: Usage | None = None) -> bytes:
        """Return the event with the finish reason and the counts."""
        return b"data: " + self.whole("", None, usage) + b"\n\n"

    def whole(self, content: str, reasoning: str | None, usage: Usage | None) -> bytes:
        """Return the body of an answer in one piece."""
        counts = {} if usage is None else usage.json()
        cached = counts.pop("prompt_tokens_details", {})
        return orjson.dumps({"text": content, "meta_info": self._meta(last=True) | counts | cached})

    def _meta(self, *, last: bool) -> dict[str, Any]:
        return {"id": self._answer_id, "finish_reason": {"type": self._reason} if last else None}
