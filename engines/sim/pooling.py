"""Pooling: embeddings and scores of one or several texts, each a sequence that ends with its prefill."""

import random
from typing import Any

import orjson

from loadgen.engines.sim import http1
from loadgen.engines.sim.answers import Answer, Client
from loadgen.engines.sim.completion_request import ApiError, CompletionRequest, Prompt, check_model, parse_chat
from loadgen.engines.sim.settings import SimSettings

DIMENSIONS = 384  # of an embedding, as a small model has
_GENERATOR = random.Random(0)
_FLOATS = [round(_GENERATOR.uniform(-1.0, 1.0), 8) for _ in range(DIMENSIONS)]
VECTORS = {"float": orjson.dumps(_FLOATS), "base64": b'"' + b"A" * (DIMENSIONS * 16 // 3) + b'"'}  # the same for all
SEPARATOR = "\n"  # between a query and a document: one token


class PooledAnswer(Answer):
    """The sequence of one text.

    Attributes:
        batch: The request that it belongs to.
    """

    __slots__ = ("batch",)

    generates = False

    def __init__(self, batch: "Batch", client: Client, request: CompletionRequest) -> None:
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
    """

    client: Client | None

    def __init__(self, client: Client, requests: list[CompletionRequest], head: dict[str, Any], results: bytes) -> None:
        self.client, self._head, self._results = client, head, results
        self.sequences = tuple(PooledAnswer(self, client, request) for request in requests)
        self._left = len(requests)

    def finish_one(self) -> None:
        """End one of the sequences; the last one sends the response."""
        self._left -= 1
        client = self.client
        if self._left or client is None:
            return
        tokens = sum(each.prompt_tokens for each in self.sequences)
        usage: dict[str, Any] = {"prompt_tokens": tokens, "total_tokens": tokens, "completion_tokens": 0}
        if self.sequences[0].request.blocks is not None:
            usage["prompt_tokens_details"] = {"cached_tokens": sum(each.cached for each in self.sequences)}
        body = orjson.dumps(self._head).removesuffix(b"}") + self._results + b',"usage":' + orjson.dumps(usage) + b"}"
        client.transport.write(http1.response(200, http1.JSON, body, keep_alive=client.keep_alive))
        client.finish()


def vectors(
    prefix: str,  # prefix of the answer's id
    kind: str,  # the field `object` of each result
    member: str,  # the field of each result that has the vector
    body: dict[str, Any],
    client: Client,
    settings: SimSettings,
    answer_id: str,
    created: int,
) -> Answer:
    """Answer a request for a vector of each input."""
    check_model(body, settings.model_names)
    encoding = body.get("encoding_format") or "float"
    if encoding not in VECTORS:
        raise ApiError(400, f"encoding_format must be float or base64, got {encoding!r}", param="encoding_format")
    requests = [_request(prompt, body, settings) for prompt in _prompts(body)]
    result = b'"object":"%b","%b":%b}' % (kind.encode(), member.encode(), VECTORS[encoding])
    results = b",".join(b'{"index":%d,%b' % (index, result) for index in range(len(requests)))
    head = {"id": f"{prefix}-{answer_id}", "created": created, "object": "list", "model": settings.served_model_name}
    return Batch(client, requests, head, b',"data":[' + results + b"]").sequences[0]


def rerank(body: dict[str, Any], client: Client, settings: SimSettings, answer_id: str, created: int) -> Answer:
    """Answer a request for the scores of documents."""
    query, documents = body.get("query"), body.get("documents")
    if not isinstance(query, str) or not isinstance(documents, list) or not documents:
        raise ApiError(400, "query must be a text and documents a list of texts", param="documents")
    if not all(isinstance(document, str) for document in documents):
        raise ApiError(400, "each document must be a text", param="documents")
    check_model(body, settings.model_names)
    requests = [_request(Prompt([f"{query}{SEPARATOR}{document}"]), body, settings) for document in documents]
    results = [
        {"index": index, "document": {"text": text}, "relevance_score": 0.5} for index, text in enumerate(documents)
    ]
    head = {"id": f"rerank-{answer_id}", "model": settings.served_model_name}
    return Batch(client, requests, head, b',"results":' + orjson.dumps(results)).sequences[0]


def _prompts(body: dict[str, Any]) -> list[Prompt]:
    """Return the inputs: a text, token ids, or a list of either; the messages of a chat are one input."""
    if "messages" in body:
        return [parse_chat(body)]
    given = body.get("input")
    return list(map(_prompt, given if isinstance(given, list) and given and not isinstance(given[0], int) else [given]))


def _prompt(given: object) -> Prompt:
    if isinstance(given, str):
        return Prompt(texts=[given])
    if isinstance(given, list) and given and all(type(token) is int for token in given):
        return Prompt(ids=given)
    raise ApiError(400, "input must be a text, a list of token ids, or a list of either", param="input")


def _request(prompt: Prompt, body: dict[str, Any], settings: SimSettings) -> CompletionRequest:
    """Make the request of one input, which is cut where the body wants that."""
    count, limit = prompt.count(settings), body.get("truncate_prompt_tokens")
    if limit is not None:
        count = min(count, settings.max_model_len if limit == -1 else limit)
    if not 0 < count <= settings.max_model_len:
        problem = f"the input has {count} tokens, and the model takes 1 to {settings.max_model_len}"
        raise ApiError(400, problem, param="input")
    return CompletionRequest(
        prompt_tokens=count,
        output_tokens=1,  # of the scheduler: the step in which the prefill ends
        blocks=prompt.blocks(settings, count),
    )
