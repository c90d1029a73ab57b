"""API: the endpoints of the simulator."""

import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Any, Literal

import orjson

from loadgen.engines.sim import metrics, pooling
from loadgen.engines.sim.answers import Answer, StreamedAnswer, WholeAnswer
from loadgen.engines.sim.api_format import CompletionWriter, GenerateWriter, ResponseWriter
from loadgen.engines.sim.completion_request import (
    check_model,
    parse_chat,
    parse_prompt,
    parse_request,
)
from loadgen.engines.sim.connection import ServerConnection
from loadgen.engines.sim.engine_core import CorePool
from loadgen.engines.sim.http1 import Request, RequestError
from loadgen.engines.sim.settings import HANG, UNAVAILABLE, Faults, SimSettings
from loadgen.engines.sim.tokenizer import TOKENIZER, SimTokenizer
from loadgen.engines.sim.typed_format import MessagesWriter, ResponsesWriter
from loadgen.version import __version__

MakePooled = Callable[[dict[str, Any], ServerConnection, SimSettings, str], Answer]


COMPLETIONS_AT: dict[str, type[ResponseWriter]] = {
    "/v1/chat/completions": ResponseWriter,
    "/v1/completions": CompletionWriter,
    "/v1/responses": ResponsesWriter,
    "/v1/messages": MessagesWriter,
    "/generate": GenerateWriter,
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
        state: loading: healthy, but prompts are refused; unavailable: not healthy, and prompts are
            refused; silent: prompts are accepted and never answered.
    """

    def __init__(
        self, settings: SimSettings, faults: Faults, cores: CorePool, tokenizer: SimTokenizer
    ) -> None:
        self.cores = cores
        self.state: Literal["ready", "loading", "unavailable", "silent"] = "ready"
        self._settings = settings
        self._faults = faults
        self._tokenizer = tokenizer
        self._model = orjson.dumps(settings.served_model_name).decode()
        self._started = int(time.time())
        self._run_id = os.urandom(4).hex()
        self._requests = 0
        self._routes: dict[
            str, tuple[str, Callable[[Request, ServerConnection], Answer | None]]
        ] = {
            **{
                path: ("POST", partial(self._complete, writer))
                for path, writer in COMPLETIONS_AT.items()
            },
            **{path: ("POST", partial(self._pool, make)) for path, make in POOLED_AT.items()},
            "/v1/models": ("GET", self._models),
            "/tokenize": ("POST", self._tokenize),
            "/metrics": ("GET", self._metrics),
            "/health": ("GET", self._health),
            "/version": ("GET", lambda request, client: _send(client, {"version": __version__})),
            "/server_info": ("GET", lambda request, client: _send(client, asdict(settings))),
            "/reset_prefix_cache": ("POST", self._reset_prefix_cache),
            "/flush_cache": ("POST", self._reset_prefix_cache),
        }

    @property
    def freezes_streams(self) -> bool:
        """Whether single streams are frozen from time to time."""
        return self._faults.freeze_every_s > 0

    def answer(self, request: Request, client: ServerConnection) -> Answer | None:
        """Send the response, and return None; or return an answer that an engine core will complete
        and send.

        Raises:
            RequestError: The request is refused.
        """
        if request.path not in self._routes:
            raise RequestError(404, f"unknown path {request.path}")
        method, respond = self._routes[request.path]
        if request.method != method:
            raise RequestError(405, f"{request.path} takes {method}, not {request.method}")
        return respond(request, client)

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

    def _begin(self, request: Request) -> dict[str, Any]:
        """Count a request with prompts, and parse its body."""
        if self.state in ("loading", "unavailable"):
            raise RequestError(503, "the server does not accept prompts now")
        most = self._faults.max_concurrent_requests
        if most and self.cores.requests >= most:
            problem = f"{most} requests are in progress, the maximum"
            raise RequestError(429, problem, retry_after_s=self._faults.retry_after_s)
        self._requests += 1
        if self._faults.fault and self._requests > self._faults.fault_after:
            self.fail()
        return request.json

    def _pool(self, make: MakePooled, request: Request, client: ServerConnection) -> Answer:
        """Begin the answer to a request for embeddings or scores."""
        body = self._begin(request)
        return self._submit(make(body, client, self._settings, self._answer_id))

    @property
    def _answer_id(self) -> str:
        return f"{self._run_id}{self._requests:08x}"

    def _submit(self, answer: Answer) -> Answer:
        if self.state != "silent":
            self.cores.submit(answer)
        return answer

    def _complete(
        self, form: type[ResponseWriter], request: Request, client: ServerConnection
    ) -> Answer:
        """Begin the answer to a request for tokens."""
        body = form.as_openai(self._begin(request), self._settings.served_model_name)
        # The answer depends on the server and on the number of the request, and on nothing else.
        parsed = parse_request(
            body, form.api, self._settings, self._settings.seed * 1_000_003 + self._requests
        )
        writer = form(self._answer_id, int(time.time()), self._model, parsed.finish_reason)
        kind = StreamedAnswer if parsed.stream else WholeAnswer
        return self._submit(kind(client, parsed, writer, self._tokenizer.words))

    def _models(self, request: Request, client: ServerConnection) -> None:
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
        _send(client, {"object": "list", "data": rows})

    def _tokenize(self, request: Request, client: ServerConnection) -> None:
        body = request.json
        check_model(body, self._settings.model_names)
        prompt = parse_chat(body) if "messages" in body else parse_prompt(body)
        # The template's tokens have no text: they come first, as unknown tokens.
        template = self._settings.chat_template_tokens if prompt.is_chat else 0
        encoded = (token for text in prompt.texts for token in self._tokenizer.encode(text))
        tokens = [*([0] * template), *prompt.ids, *encoded]
        _send(
            client,
            {"count": len(tokens), "max_model_len": self._settings.max_model_len, "tokens": tokens},
        )

    def _metrics(self, request: Request, client: ServerConnection) -> None:
        client.reply(self.cores.exposition().encode(), kind=metrics.CONTENT_TYPE)

    def _health(self, request: Request, client: ServerConnection) -> None:
        client.reply(b"", status=503 if self.state == "unavailable" else 200, kind="text/plain")

    def _reset_prefix_cache(self, request: Request, client: ServerConnection) -> None:
        self.cores.reset_prefix_cache()
        client.reply(b"", kind="text/plain")


def _send(client: ServerConnection, value: object) -> None:
    """Answer the request with a value as JSON."""
    client.reply(orjson.dumps(value))
