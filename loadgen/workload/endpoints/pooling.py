"""Embeddings, pooling and rerank: answers in one piece, without tokens.

The bodies are those of vLLM's client.
"""

from collections.abc import Callable
from functools import partial

import orjson

from loadgen.config.backends import BACKENDS
from loadgen.errors import BadInput, setting
from loadgen.workload.endpoints.api import Api, Fields, refuse_several, text_of
from loadgen.workload.prompt import Prompt

# The server cuts a prompt that is longer than the model takes.
TRUNCATED: Fields = {"truncate_prompt_tokens": -1}
# Fields of a body that hold the texts of embeddings, and the documents of rerank.
TEXTS = ("input", "documents")
PARTIAL = "top_n"  # asks for the best results alone


def count_texts(body: bytes) -> int:
    """Return how many results the body of a request asks for; 0 where that is not known."""
    fields = orjson.loads(body)
    for name in TEXTS:
        texts = fields.get(name)
        if isinstance(texts, list) and PARTIAL not in fields:
            is_one = bool(texts) and isinstance(texts[0], int)  # the token ids of one text
            return 1 if is_one else len(texts)
        if isinstance(texts, str):
            return 1
    return 0


def _chat_embeddings(prompt: Prompt, model: str, fields: Fields) -> Fields:
    refuse_several(prompt)
    messages = [*prompt.messages] or [
        {"role": "user", "content": [{"type": "text", "text": prompt.text}]}
    ]
    return {"model": model, "messages": messages} | TRUNCATED | fields


def _embeddings(constants: Fields, prompt: Prompt, model: str, fields: Fields) -> Fields:
    """Make a body with the texts; `constants` are fields that every request has."""
    return {"model": model, "input": _input(prompt)} | constants | fields


def _pooling(prompt: Prompt, model: str, fields: Fields) -> Fields:
    return {"model": model} | TRUNCATED | {"input": _input(prompt)} | fields


def _rerank(prompt: Prompt, model: str, fields: Fields) -> Fields:
    if len(prompt.texts) < 2:
        problem = "its prompts are one text each, and rerank needs a query and documents"
        raise BadInput(setting.dataset_name, problem, "use random-rerank")
    query, *documents = prompt.texts
    return {"model": model, "query": query, "documents": documents} | TRUNCATED | fields


def _input(prompt: Prompt) -> str | list[str]:
    return list(prompt.texts) or text_of(prompt)


def _api(
    name: str,
    body: Callable[[Prompt, str, Fields], Fields],
    *prompt_fields: str,
    messages: bool = False,
) -> Api:
    backend = BACKENDS[name]
    return Api(
        backend.path,
        body,
        takes_messages=messages,
        ending=backend.ending,
        length_field="",
        prompt_fields=frozenset(prompt_fields),
    )


EMBEDDINGS = _api("openai-embeddings", partial(_embeddings, TRUNCATED), "input")
CHAT_EMBEDDINGS = _api("openai-embeddings-chat", _chat_embeddings, messages=True)
INFINITY = _api("infinity-embeddings", partial(_embeddings, {}), "input")
POOLING = _api("vllm-pooling", _pooling, "input")
RERANK = _api("vllm-rerank", _rerank, "query", "documents")
