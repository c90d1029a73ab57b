"""API: the endpoints of the simulator and their error responses."""

import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Any, Literal, NamedTuple

import orjson

from loadgen.engines.sim import http1, messages_format, metrics, pooling, responses_format
from loadgen.engines.sim.answers import Answer, Client, StreamedAnswer, WholeAnswer
from loadgen.engines.sim.api_format import CompletionWriter, ResponseWriter
from loadgen.engines.sim.completion_request import (
    ApiError,
    check_model,
    parse_chat,
    parse_json,
    parse_prompt,
    parse_request,
)
from loadgen.engines.sim.engine_core import CorePool
from loadgen.engines.sim.generate_format import GenerateWriter, as_completion
from loadgen.engines.sim.settings import HANG, UNAVAILABLE, Faults, SimSettings
from loadgen.engines.sim.tokenizer import TOKENIZER, SimTokenizer
from loadgen.version import __version__

MakePooled = Callable[[dict[str, Any], Client, SimSettings, str, int], Answer]


class Completions(NamedTuple):
    """The requests and answers at one path.

    Attributes:
        as_openai: Returns a body as one of the API of the writer, given the name of the served
            model.
        writer: Writes an answer; its API is the one of OpenAI whose rules the requests follow.
    """

    as_openai: Callable[[dict[str, Any], str], dict[str, Any]]
    writer: type[ResponseWriter]


def _unchanged(body: dict[str, Any], model: str) -> dict[str, Any]:
    return body


COMPLETIONS_AT = {
    "/v1/chat/completions": Completions(_unchanged, ResponseWriter),
    "/v1/completions": Completions(_unchanged, CompletionWriter),
    "/v1/responses": Completions(responses_format.as_chat, responses_format.ResponsesWriter),
    "/v1/messages": Completions(messages_format.as_chat, messages_format.MessagesWriter),
    "/generate": Completions(as_completion, GenerateWriter),
}

POOLED_AT: dict[str, MakePooled] = {
    "/v1/embeddings": partial(pooling.vectors, "embd", "embedding", "embedding"),
    "/pooling": partial(pooling.vectors, "pool", "pooling", "data"),
    **dict.fromkeys(("/rerank", "/v1/rerank", "/v2/rerank"), pooling.rerank),
}


class Api:
    """Answers requests, at once or through an engine core.

    Args:
        settings: Settings of the simulator.
        faults: Faults to simulate.
        cores: The engine cores.
        tokenizer: The simulator's tokenizer.

    Attributes:
        state: loading: healthy, but prompts are refused; unavailable: not healthy, and prompts are refused; silent:
            prompts are accepted and never answered.
    """

    def __init__(self, settings: SimSettings, faults: Faults, cores: CorePool, tokenizer: SimTokenizer) -> None:
        self.cores = cores
        # loading: healthy, but prompts are refused; unavailable: not healthy, and prompts are refused; silent: prompts
        # are accepted and never answered
        self.state: Literal["ready", "loading", "unavailable", "silent"] = "ready"
        self._settings, self._faults, self._tokenizer = settings, faults, tokenizer
        self._model = orjson.dumps(settings.served_model_name).decode()
        self._started, self._run_id, self._requests = int(time.time()), os.urandom(4).hex(), 0
        self._routes: dict[str, tuple[str, Callable[[http1.Request, Client], Answer | bytes]]] = {
            **{path: ("POST", partial(self._complete, form)) for path, form in COMPLETIONS_AT.items()},
            **{path: ("POST", partial(self._pool, make)) for path, make in POOLED_AT.items()},
            "/v1/models": ("GET", self._models),
            "/tokenize": ("POST", self._tokenize),
            "/metrics": ("GET", self._metrics),
            "/health": ("GET", self._health),
            "/version": ("GET", lambda request, client: _json({"version": __version__}, request)),
            "/server_info": ("GET", lambda request, client: _json(asdict(settings), request)),
            "/reset_prefix_cache": ("POST", self._reset_prefix_cache),
            "/flush_cache": ("POST", self._reset_prefix_cache),
        }

    def answer(self, request: http1.Request, client: Client) -> Answer | bytes:
        """Return the response, or an answer that was given to an engine core and will write its own response."""
        try:
            if request.path not in self._routes:
                raise ApiError(404, f"unknown path {request.path}", kind="NotFoundError")
            method, respond = self._routes[request.path]
            if request.method != method:
                raise ApiError(405, f"{request.path} takes {method}, not {request.method}", kind="MethodNotAllowed")
            return respond(request, client)
        except ApiError as error:
            fields = f"retry-after: {error.retry_after_s}\r\n" if error.retry_after_s else ""
            return http1.response(error.status, http1.JSON, error.json(), keep_alive=request.keep_alive, fields=fields)

    def fail(self) -> None:
        """Simulate the fault; a crash ends the process."""
        if self._faults.fault == HANG:
            self.state = "silent"
            self.cores.close()
        elif self._faults.fault == UNAVAILABLE:
            self.state = "unavailable"
        else:
            sys.stdout.flush()
            sys.stderr.write(self._faults.crash or "")
            sys.stderr.flush()
            os._exit(1)

    def _begin(self, request: http1.Request) -> dict[str, Any]:
        """Count a request with prompts, and parse its body."""
        if self.state in ("loading", "unavailable"):
            raise ApiError(503, "the server does not accept prompts now", kind="ServiceUnavailableError")
        most = self._faults.max_concurrent_requests
        if most and self.cores.requests >= most:
            problem = f"{most} requests are in progress, the maximum"
            raise ApiError(429, problem, kind="TooManyRequests", retry_after_s=self._faults.retry_after_s)
        self._requests += 1
        if self._faults.fault and self._requests > self._faults.fault_after:
            self.fail()
        return parse_json(request.body)

    def _pool(self, make: MakePooled, request: http1.Request, client: Client) -> Answer:
        body = self._begin(request)
        answer = make(body, client, self._settings, self._answer_id, int(time.time()))
        if self.state != "silent":
            self.cores.submit(answer)
        return answer

    @property
    def _answer_id(self) -> str:
        return f"{self._run_id}{self._requests:08x}"

    def _complete(self, form: Completions, request: http1.Request, client: Client) -> Answer:
        body = form.as_openai(self._begin(request), self._settings.served_model_name)
        # The answer depends on the server and on the number of the request, and on nothing else.
        parsed = parse_request(body, form.writer.api, self._settings, self._settings.seed * 1_000_003 + self._requests)
        writer = form.writer(self._answer_id, int(time.time()), self._model, parsed.finish_reason)
        kind = StreamedAnswer if parsed.stream else WholeAnswer
        answer = kind(client, parsed, writer, self._tokenizer.words)
        if self.state != "silent":
            self.cores.submit(answer)
        return answer

    def _models(self, request: http1.Request, client: Client) -> bytes:
        served, *adapters = self._settings.model_names
        model = {
            "id": served,
            "object": "model",
            "created": self._started,
            "owned_by": "loadgen-simulator",  # by this `loadgen run` recognises the simulator
            "root": str(TOKENIZER.parent),
            "parent": None,
            "max_model_len": self._settings.max_model_len,
        }
        rows = [model, *(model | {"id": name, "root": name, "parent": served} for name in adapters)]
        return _json({"object": "list", "data": rows}, request)

    def _tokenize(self, request: http1.Request, client: Client) -> bytes:
        body = parse_json(request.body)
        check_model(body, self._settings.model_names)
        prompt = parse_chat(body) if "messages" in body else parse_prompt(body)
        # The template's tokens have no text: they come first, as unknown tokens.
        template = self._settings.chat_template_tokens if prompt.is_chat else 0
        encoded = (token for text in prompt.texts for token in self._tokenizer.encode(text))
        tokens = [*([0] * template), *prompt.ids, *encoded]
        return _json({"count": len(tokens), "max_model_len": self._settings.max_model_len, "tokens": tokens}, request)

    def _metrics(self, request: http1.Request, client: Client) -> bytes:
        text = self.cores.exposition()
        return http1.response(200, metrics.CONTENT_TYPE, text.encode(), keep_alive=request.keep_alive)

    def _health(self, request: http1.Request, client: Client) -> bytes:
        status = 503 if self.state == "unavailable" else 200
        return http1.response(status, "text/plain", b"", keep_alive=request.keep_alive)

    def _reset_prefix_cache(self, request: http1.Request, client: Client) -> bytes:
        self.cores.reset_prefix_cache()
        return http1.response(200, "text/plain", b"", keep_alive=request.keep_alive)


def _json(value: object, request: http1.Request) -> bytes:
    return http1.response(200, http1.JSON, orjson.dumps(value), keep_alive=request.keep_alive)
