"""Pooling: embeddings and scores of one or several texts, each a sequence that ends with its
prefill.
"""

import random
import time
from typing import Any

import orjson

from loadgen.engines.sim.answers import Answer
from loadgen.engines.sim.completion_request import (
    CompletionRequest,
    Prompt,
    check_model,
    parse_chat,
)
from loadgen.engines.sim.connection import ServerConnection
from loadgen.engines.sim.http1 import RequestError
from loadgen.engines.sim.settings import SimSettings

DIMENSIONS = 384  # of an embedding, as a small model has
_GENERATOR = random.Random(0)
_FLOATS = [round(_GENERATOR.uniform(-1.0, 1.0), 8) for _ in range(DIMENSIONS)]
# The same for all.
VECTORS = {"float": orjson.dumps(_FLOATS), "base64": b'"' + b"A" * (DIMENSIONS * 16 // 3) + b'"'}
SEPARATOR = "\n"  # between a query and a document: one token


class PooledAnswer(Answer):
    """The sequence of one text.

    Args:
        batch: The request that it belongs to.
        client, request: As an `Answer`'s.

    Attributes:
        batch: The request that it belongs to.
    """

    __slots__ = ("batch",)

    generates = False

    def __init__(
        self, batch: "Batch", client: ServerConnection, request: CompletionRequest
    ) -> None:
        super().__init__(client, request)
        self.batch = batch

    @property
    def sequences(self) -> tuple[Answer, ...]:
        """All sequences of the request."""
        return self.batch.sequences

    def finish(self) -> None:
        """Note that the text is computed."""
        self.batch.finish_one()

    def abandon(self) -> None:
        """Write no response."""
        self.batch.client = None


class Batch:
    """A request with its sequences, which is answered when all of them have ended.

    Args:
        client: The connection of the request.
        requests: One for each text.
        head: The members of the response before its list of results.
        results: The list of results, as JSON.

    Attributes:
        client: The connection; None: it has ended.
        sequences: The sequences.
    """

    def __init__(
        self,
        client: ServerConnection,
        requests: list[CompletionRequest],
        head: dict[str, Any],
        results: bytes,
    ) -> None:
        self.client: ServerConnection | None = client
        self._head = head
        self._results = results
        self.sequences = tuple(PooledAnswer(self, client, request) for request in requests)
        self._left = len(requests)

    def finish_one(self) -> None:
        """End one of the sequences; the last one sends the response."""
        self._left -= 1
        client = self.client
        if self._left or client is None:
            return
        tokens = sum(sequence.prompt_tokens for sequence in self.sequences)
        usage: dict[str, Any] = {
            "prompt_tokens": tokens,
            "total_tokens": tokens,
            "completion_tokens": 0,
        }
        if self.sequences[0].request.blocks is not None:
            usage["prompt_tokens_details"] = {
                "cached_tokens": sum(sequence.cached for sequence in self.sequences)
            }
        body = (
            orjson.dumps(self._head).removesuffix(b"}")
            + self._results
            + b',"usage":'
            + orjson.dumps(usage)
            + b"}"
        )
        client.reply(body)


def vectors(
    prefix: str,
    kind: str,
    member: str,
    body: dict[str, Any],
    client: ServerConnection,
    settings: SimSettings,
    answer_id: str,
) -> Answer:
    """Answer a request for a vector of each input.

    Args:
        prefix: Prefix of the answer's id.
        kind: The field `object` of each result.
        member: The field of each result that has the vector.
        body: Body of the request.
        client: The connection of the request.
        settings: Settings of the simulator.
        answer_id: Unique part of the answer's id.

    Raises:
        RequestError: The request is invalid.
    """
    check_model(body, settings.model_names)
    encoding = body.get("encoding_format") or "float"
    if encoding not in VECTORS:
        raise RequestError(
            400,
            f"encoding_format must be float or base64, got {encoding!r}",
            param="encoding_format",
        )
    requests = [_request(prompt, body, settings) for prompt in _prompts(body)]
    result = b'"object":"%b","%b":%b}' % (kind.encode(), member.encode(), VECTORS[encoding])
    results = b",".join(b'{"index":%d,%b' % (index, result) for index in range(len(requests)))
    head = {
        "id": f"{prefix}-{answer_id}",
        "created": int(time.time()),
        "object": "list",
        "model": settings.served_model_name,
    }
    return Batch(client, requests, head, b',"data":[' + results + b"]").sequences[0]


def rerank(
    body: dict[str, Any], client: ServerConnection, settings: SimSettings, answer_id: str
) -> Answer:
    """Answer a request for the scores of documents; the arguments are those of `vectors`.

    Raises:
        RequestError: The request is invalid.
    """
    query = body.get("query")
    documents = body.get("documents")
    if not isinstance(query, str) or not isinstance(documents, list) or not documents:
        raise RequestError(
            400, "query must be a text and documents a list of texts", param="documents"
        )
    if not all(isinstance(document, str) for document in documents):
        raise RequestError(400, "each document must be a text", param="documents")
    check_model(body, settings.model_names)
    requests = [
        _request(Prompt([f"{query}{SEPARATOR}{document}"]), body, settings)
        for document in documents
    ]
    results = [
        {"index": index, "document": {"text": text}, "relevance_score": 0.5}
        for index, text in enumerate(documents)
    ]
    head = {"id": f"rerank-{answer_id}", "model": settings.served_model_name}
    return Batch(client, requests, head, b',"results":' + orjson.dumps(results)).sequences[0]


def _prompts(body: dict[str, Any]) -> list[Prompt]:
    """Return the inputs: a text, token ids, or a list of either; the messages of a chat are one
    input.

    Raises:
        RequestError: An input is neither.
    """
    if "messages" in body:
        return [parse_chat(body)]
    inputs = body.get("input")
    if not isinstance(inputs, list) or not inputs or isinstance(inputs[0], int):
        inputs = [inputs]
    prompts: list[Prompt] = []
    for content in inputs:
        if isinstance(content, str):
            prompts.append(Prompt(texts=[content]))
        elif isinstance(content, list) and content and all(type(token) is int for token in content):
            prompts.append(Prompt(ids=content))
        else:
            raise RequestError(
                400, "input must be a text, a list of token ids, or a list of either", param="input"
            )
    return prompts


def _request(prompt: Prompt, body: dict[str, Any], settings: SimSettings) -> CompletionRequest:
    """Make the request of one input, which is cut where the body wants that.

    Raises:
        RequestError: The input is empty, or longer than the context.
    """
    count = prompt.count(settings)
    limit = body.get("truncate_prompt_tokens")
    if limit is not None:
        count = min(count, settings.max_model_len if limit == -1 else limit)
    if not 0 < count <= settings.max_model_len:
        problem = f"the input has {count} tokens, and the model takes 1 to {settings.max_model_len}"
        raise RequestError(400, problem, param="input")
    return CompletionRequest(
        prompt_tokens=count,
        output_tokens=1,  # of the scheduler: the step in which the prefill ends
        blocks=prompt.blocks(settings, count),
    )
