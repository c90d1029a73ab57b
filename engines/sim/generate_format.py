"""SGLang's own API: its requests as those of completions, and the JSON of its answers.

Each event has the text of its own tokens, as from SGLang with incremental streaming, and the counts so far.
"""

from typing import Any

import orjson

from loadgen.engines.sim.api_format import COMPLETION, ResponseWriter, Usage
from loadgen.engines.sim.completion_request import ApiError

MAX_NEW_TOKENS = 128  # SGLang's default


def as_completion(body: dict[str, Any], model: str) -> dict[str, Any]:
    """Return the body of a completions request that asks for the same.

    Raises:
        ApiError: There is no prompt, or the sampling parameters are no object.
    """
    sampling = body.get("sampling_params") or {}
    if not isinstance(sampling, dict):
        raise ApiError(400, "sampling_params must be an object", param="sampling_params")
    prompt = body.get("text") if body.get("input_ids") is None else body["input_ids"]
    if prompt is None:
        raise ApiError(400, "text or input_ids must be given", param="text")
    return {
        "model": body.get("lora_path") or model,
        "prompt": prompt,
        "max_tokens": sampling.get("max_new_tokens", MAX_NEW_TOKENS),
        "min_tokens": sampling.get("min_new_tokens"),
        "ignore_eos": sampling.get("ignore_eos"),
        "stream": body.get("stream"),
        "stream_options": {"continuous_usage_stats": True},
    }


class GenerateWriter(ResponseWriter):
    """Writes the events or the single response of one answer, which has neither a time nor the name of a model."""

    api = COMPLETION
    token_head = b'data: {"text":"'

    def counted_tail(self, prompt_tokens: int, *, last: bool = False) -> tuple[bytes, bytes, bytes]:
        """Return the rest of a token's event, in three parts around its two token counts."""
        meta = orjson.dumps(self._meta(last=last) | {"prompt_tokens": prompt_tokens}).removesuffix(b"}")
        return b'","meta_info":' + meta + b',"total_tokens":', b',"completion_tokens":', b"}}\n\n"

    def finish(self, usage: Usage | None = None) -> bytes:
        """Return the event with the finish reason and the counts."""
        return b"data: " + self._answer("", usage) + b"\n\n"

    def whole(self, content: str, reasoning: str | None, usage: Usage) -> bytes:
        """Return the body of an answer in one piece."""
        return self._answer(content, usage)

    def _answer(self, text: str, usage: Usage | None) -> bytes:
        counts = {} if usage is None else usage.json()
        cached = counts.pop("prompt_tokens_details", {})
        return orjson.dumps({"text": text, "meta_info": self._meta(last=True) | counts | cached})

    def _meta(self, *, last: bool) -> dict[str, Any]:
        return {"id": self._answer_id, "finish_reason": {"type": self._reason} if last else None}
