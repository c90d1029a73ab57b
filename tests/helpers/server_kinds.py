"""Servers of the kinds that people measure: where they answer, what they refuse, and in which
words.

Each row of KINDS follows the documentation of a server, and public threads about its refusals, in
words of our own. None of them is a whole server: they tell what a client has to cope with before
its first answer.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from loadgen.engines.sim.http1 import Request, whole
from loadgen.testing.replies import good_body, streamed
from tests.helpers.scripted_server import answering_each, serving

Answer = tuple[int, Any]  # status and JSON

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
KEY, MODEL = "sk-good-1234", "m"
OPENAI = {
    *("model", "messages", "prompt", "stream", "stream_options", "max_tokens", "temperature"),
    *("max_completion_tokens", "top_p", "frequency_penalty", "presence_penalty"),
}
MISTRAL = OPENAI - {"stream_options", "max_completion_tokens"}
ANTHROPIC = {"model", "messages", "max_tokens", "stream", "temperature", "top_p", "top_k", "system"}
OLD_AZURE = OPENAI - {"stream_options", "max_completion_tokens"}


def error(message: str, kind: str = "invalid_request_error", code: str | None = None) -> Any:
    """The error object of OpenAI's API."""
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def openai_refusal(names: Sequence[str]) -> Answer:
    arguments = "argument" if len(names) == 1 else "arguments"
    return 400, error(f"Unrecognized request {arguments} supplied: {', '.join(names)}")


def first_unknown(names: Sequence[str]) -> Answer:
    return 400, error(f"Unknown parameter: '{names[0]}'.", code="unknown_parameter")


def pydantic(names: Sequence[str]) -> Answer:
    rows = [
        {"type": "extra_forbidden", "loc": ["body", name], "msg": "Extra inputs are not permitted"}
        for name in names
    ]
    return 422, {"object": "error", "message": {"detail": rows}, "type": "invalid_request_error"}


def of_anthropic(names: Sequence[str]) -> Answer:
    message = f"{names[0]}: Extra inputs are not permitted"
    return 400, {"type": "error", "error": {"type": "invalid_request_error", "message": message}}


def of_litellm(names: Sequence[str]) -> Answer:
    message = (
        f"litellm.UnsupportedParamsError: openai does not support parameters: {[*names]}, for "
        "model=m. To drop these, set litellm.drop_params=True"
    )
    return 400, error(message, kind="None", code="400")


TOO_SHORT: Answer = (
    400,
    error(
        "Could not finish the message because max_tokens or model output limit was reached. "
        "Please try again with higher max_tokens."
    ),
)


@dataclass(frozen=True)
class ServerKind:
    """A kind of server.

    Attributes:
        name: Its name.
        pasted: What its users give as URL, after scheme, host and port.
        paths: The paths that generate.
        models: The path that lists models; empty: there is none.
        row: The fields of a model's row.
        key: The header that has the key; empty: none is needed.
        no_key: Its answer to a wrong key, or none.
        known: Fields that a body may have; None: any, and unknown ones are ignored.
        refuses: Its answer to fields that a body must not have.
        missing: Its answer at any other path.
        unread: Fields that it takes and does not look at.
        no_completions: Its answer to completions, where it has the path and not for its models.
        least: The lowest limit of an answer with which it finishes its thoughts.
        always_counts: Whether the usage comes without being asked for.
        omitted: What the load does without.
        chat: Whether the load is of chats.
    """

    name: str
    pasted: str = "/v1"
    paths: tuple[str, ...] = (CHAT, COMPLETIONS)
    models: str = "/v1/models"
    row: dict[str, Any] = field(default_factory=dict)
    key: str = "authorization"
    no_key: Answer = (401, error("Incorrect API key provided", code="invalid_api_key"))
    known: set[str] | None = None
    refuses: Callable[[Sequence[str]], Answer] = openai_refusal
    missing: Answer = (404, {"detail": "Not Found"})
    unread: frozenset[str] = frozenset()
    no_completions: Answer | None = None
    least: int = 1
    always_counts: bool = False
    omitted: frozenset[str] = frozenset()
    chat: bool = False

    def reply(self, request: Request) -> bytes:
        """Answer one request."""
        if self.key:
            sent = request.headers.get(self.key, "").removeprefix("Bearer ")
            if sent != KEY:
                return whole(self.no_key[0], orjson.dumps(self.no_key[1]))
        if request.method == "GET" and request.path == self.models:
            rows = [{"id": MODEL, "object": "model"} | self.row]
            return whole(200, orjson.dumps({"object": "list", "data": rows}))
        status, body = self._refusal(request) or (200, None)
        if status != 200:
            return whole(status, orjson.dumps(body))
        fields = {k: v for k, v in request.json.items() if k not in self.unread}
        if self.always_counts:
            fields["stream_options"] = {"include_usage": True}
        return streamed(good_body(replace(request, body=orjson.dumps(fields))), 1 << 14)

    def _refusal(self, request: Request) -> Answer | None:
        if request.method != "POST" or request.path not in self.paths:
            return self.missing
        is_completion = request.path.endswith("/completions") and "prompt" in request.json
        if is_completion and self.no_completions is not None:
            return self.no_completions
        if request.json.get("model") not in (MODEL, None):
            return 404, error(f"The model {request.json['model']} does not exist")
        unknown = [name for name in request.json if self.known and name not in self.known]
        if unknown:
            return self.refuses(unknown)
        limit = request.json.get("max_completion_tokens", self.least)
        return None if limit >= self.least else TOO_SHORT


AZURE = "/openai/deployments/m"
AZURE_KEY: Answer = (401, {"error": {"code": "401", "message": "Access denied: invalid key"}})
NO_CHAT_MODEL: Answer = (
    404,
    error(
        "This is a chat model and not supported in the v1/completions endpoint. Did you mean to "
        "use v1/chat/completions?"
    ),
)
NO_OPERATION: Answer = (
    400,
    error("The completion operation does not work with this model", code="OperationNotSupported"),
)
BARE = frozenset(("ignore_eos", "stream_options", "max_completion_tokens"))
EOS = frozenset(("ignore_eos",))
KINDS = (
    ServerKind(
        "OpenAI",
        row={"owned_by": "system"},
        known=OPENAI,
        no_completions=NO_CHAT_MODEL,
        omitted=EOS,
        chat=True,
    ),
    ServerKind(
        "OpenAI, a model that thinks",
        pasted="/v1/chat/completions",
        row={"owned_by": "system"},
        known=OPENAI - {"max_tokens"},
        least=16,
        omitted=EOS,
        chat=True,
    ),
    ServerKind(
        "Azure deployment",
        pasted=f"{AZURE}/chat/completions?api-version=2024-10-21",
        paths=(f"{AZURE}/chat/completions",),
        models="",
        key="api-key",
        no_key=AZURE_KEY,
        known=OPENAI,
        refuses=first_unknown,
        omitted=EOS,
        chat=True,
    ),
    ServerKind(
        "Azure deployment of an older version",
        pasted=f"{AZURE}?api-version=2024-02-01",
        paths=(f"{AZURE}/chat/completions", f"{AZURE}/completions"),
        models="",
        key="api-key",
        no_key=AZURE_KEY,
        known=OLD_AZURE,
        no_completions=NO_OPERATION,
        omitted=BARE,
        chat=True,
    ),
    ServerKind(
        "Azure v1",
        pasted="/openai/v1/",
        paths=(f"/openai{CHAT}", f"/openai{COMPLETIONS}"),
        models="/openai/v1/models",
        row={"id": "gpt-4o-2024-11-20"},  # its deployments have names of their own
        no_key=AZURE_KEY,
        known=OPENAI,
        refuses=first_unknown,
        no_completions=NO_OPERATION,
        omitted=EOS,
        chat=True,
    ),
    ServerKind("Ollama", row={"owned_by": "library"}, key=""),
    ServerKind(
        "LiteLLM",
        pasted="",
        row={"owned_by": "openai"},
        known=OPENAI,
        refuses=of_litellm,
        omitted=EOS,
    ),
    ServerKind(
        "OpenRouter",
        pasted="/api/v1",
        paths=(f"/api{CHAT}", f"/api{COMPLETIONS}"),
        models="/api/v1/models",
        row={"pricing": {"prompt": "0"}},
    ),
    ServerKind(
        "Mistral",
        paths=(CHAT,),
        row={"owned_by": "mistralai"},
        known=MISTRAL,
        refuses=pydantic,
        missing=(404, {"message": "no Route matched with those values"}),
        always_counts=True,
        omitted=BARE,
        chat=True,
    ),
    ServerKind(
        "DeepSeek",
        pasted="",
        row={"owned_by": "deepseek"},
        unread=frozenset(("max_completion_tokens",)),
        no_completions=(
            400,
            error("completions api is only available when using beta api"),
        ),
        always_counts=True,
        omitted=BARE,
        chat=True,
    ),
    ServerKind("TGI", pasted="", row={"owned_by": MODEL}, key=""),
    ServerKind(
        "TGI with its chat URL",
        pasted=CHAT,
        row={"owned_by": MODEL},
        unread=frozenset(("max_completion_tokens",)),
        key="",
        omitted=frozenset(("max_completion_tokens",)),
        chat=True,
    ),
    ServerKind("LM Studio", row={"owned_by": "organization_owner"}, key=""),
    ServerKind("llama.cpp", pasted="", row={"owned_by": "llamacpp"}),
    ServerKind("vLLM", row={"owned_by": "vllm", "root": "org/m", "max_model_len": 4096}),
    ServerKind("SGLang", row={"owned_by": "sglang", "root": "org/m"}),
    ServerKind(
        "TensorRT-LLM",
        row={"owned_by": "tensorrt_llm"},
        known=OPENAI | {"ignore_eos", "top_k", "min_p", "repetition_penalty", "min_tokens"},
        refuses=pydantic,
        key="",
    ),
    ServerKind(
        "Anthropic",
        pasted="",
        paths=("/v1/messages",),
        row={"type": "model", "display_name": "M"},
        key="x-api-key",
        no_key=(
            401,
            {
                "type": "error",
                "error": {"type": "authentication_error", "message": "x-api-key is required"},
            },
        ),
        known=ANTHROPIC,
        refuses=of_anthropic,
        omitted=EOS,
        chat=True,
    ),
)


@dataclass
class KindServer:
    """A server of a kind.

    Attributes:
        kind: The kind.
        url: What its users paste.
        requests: Those that came, in their order.
    """

    kind: ServerKind
    url: str = ""
    requests: list[Request] = field(default_factory=list)

    @property
    def before(self) -> list[Request]:
        """The requests before the load, which has longer prompts, to the API."""
        asked = [r for r in self.requests if r.method == "POST" or r.path == self.kind.models]
        return [request for request in asked if len(request.body) < 400]

    @property
    def sent(self) -> list[dict[str, Any]]:
        """The bodies of the load."""
        return [request.json for request in self.requests if len(request.body) >= 400]

    def reply(self, request: Request) -> bytes:
        """Keep a request, and answer it."""
        self.requests.append(request)
        return self.kind.reply(request)


@asynccontextmanager
async def kind_server(kind: ServerKind) -> AsyncIterator[KindServer]:
    """Serve as a kind of server."""
    server = KindServer(kind)
    async with serving(answering_each(server.reply)) as url:
        server.url = url + kind.pasted
        yield server
