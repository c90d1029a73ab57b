"""A server that answers in every API that wild commands ask for, and logs each request.

A request that no real server would take is refused with status 400, so that a command that sends
nonsense fails. Its times are those of asyncio: good for meanings, not for measuring.
"""

import asyncio
import base64
import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import orjson

from loadgen.engines.sim.connection import ServerConnection
from loadgen.engines.sim.http1 import LAST_CHUNK, Request, chunk, error_body
from loadgen.errors import BadInput
from loadgen.testing.replies import DONE, STREAM

Body = dict[str, Any]
Usage = dict[str, int]

MODELS = ("truth",)
CONTEXT = 131072  # tokens
FIRST_S, GAP_S = 0.01, 0.001
WORD = " tok"
PICTURES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff")
SWITCHES = ("/start_profile", "/stop_profile", "/flush_cache", "/reset_prefix_cache")
GETS: dict[str, Any] = {
    "/v1/models": {"object": "list", "data": [{"id": name, "object": "model"} for name in MODELS]},
    "/health": {},
    "/model_info": {"model_path": "truth"},
    "/get_model_info": {"model_path": "truth"},
    "/server_info": {"internal_states": [{}]},
    "/get_server_info": {"internal_states": [{}]},
}


def _event(data: Any, name: str = "") -> bytes:
    return (f"event: {name}\n" if name else "").encode() + b"data: " + orjson.dumps(data) + b"\n\n"


def _named(kind: str, **fields: Any) -> bytes:
    return _event({"type": kind, **fields}, kind)


def _chat(number: int, tokens: int) -> bytes:
    return _choice(number, tokens, delta={"content": WORD})


def _completion(number: int, tokens: int) -> bytes:
    return _choice(number, tokens, text=WORD)


def _choice(number: int, tokens: int, **fields: Any) -> bytes:
    finish = "length" if number == tokens - 1 else None
    return _event({"id": "x", "choices": [{"index": 0, "finish_reason": finish, **fields}]})


def _openai_end(body: Body, usage: Usage) -> bytes:
    counts = b""
    if (body.get("stream_options") or {}).get("include_usage"):
        counts = _event({"id": "x", "choices": [], "usage": usage})
    return counts + DONE


def _generate(body: Body, usage: Usage) -> Iterator[bytes]:
    tokens = usage["completion_tokens"]
    for number in range(1, tokens + 1):
        finish = {"type": "length", "length": tokens} if number == tokens else None
        counts = {
            "prompt_tokens": usage["prompt_tokens"],
            "completion_tokens": number,
            "cached_tokens": 0,
        }
        yield _event(
            {"text": WORD * number, "meta_info": {"id": "x", "finish_reason": finish} | counts}
        )
    yield DONE


def _responses(body: Body, usage: Usage) -> Iterator[bytes]:
    yield _named("response.created", response={"id": "x", "status": "in_progress"})
    for _ in range(usage["completion_tokens"]):
        yield _named(
            "response.output_text.delta", item_id="m", output_index=0, content_index=0, delta=WORD
        )
    yield _named(
        "response.completed", response={"id": "x", "status": "completed", "usage": _in_out(usage)}
    )


def _messages(body: Body, usage: Usage) -> Iterator[bytes]:
    begun = {"input_tokens": usage["prompt_tokens"], "output_tokens": 0}
    yield _named(
        "message_start", message={"id": "x", "role": "assistant", "content": [], "usage": begun}
    )
    yield _named("content_block_start", index=0, content_block={"type": "text", "text": ""})
    for _ in range(usage["completion_tokens"]):
        yield _named("content_block_delta", index=0, delta={"type": "text_delta", "text": WORD})
    ended = {"output_tokens": usage["completion_tokens"]}
    yield _named("content_block_stop", index=0) + _named(
        "message_delta", delta={"stop_reason": "max_tokens"}, usage=ended
    )
    yield _named("message_stop")


def _openai(
    token: Callable[[int, int], bytes], first: bytes, body: Body, usage: Usage
) -> Iterator[bytes]:
    tokens = usage["completion_tokens"]
    for number in range(tokens):
        yield (first if number == 0 else b"") + token(number, tokens)
    yield _openai_end(body, usage)


ROLE = _event({"id": "x", "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]})
STREAMS: dict[str, Callable[[Body, Usage], Iterator[bytes]]] = {
    "/v1/chat/completions": functools.partial(_openai, _chat, ROLE),
    "/v1/completions": functools.partial(_openai, _completion, b""),
    "/generate": _generate,
    "/v1/responses": _responses,
    "/v1/messages": _messages,
}


def _in_out(usage: Usage) -> Body:
    return {"input_tokens": usage["prompt_tokens"], "output_tokens": usage["completion_tokens"]}


def _whole(path: str, usage: Usage) -> Body:
    """Return the answer to a request that asks for no stream."""
    text, tokens = WORD * usage["completion_tokens"], usage["completion_tokens"]
    if path == "/generate":
        finish = {"type": "length", "length": tokens}
        return {"text": text, "meta_info": {"id": "x", "finish_reason": finish} | usage}
    if path == "/v1/responses":
        output = [{"type": "message", "content": [{"type": "output_text", "text": text}]}]
        return {"id": "x", "status": "completed", "output": output, "usage": _in_out(usage)}
    if path == "/v1/messages":
        content = [{"type": "text", "text": text}]
        return {
            "id": "x",
            "role": "assistant",
            "content": content,
            "stop_reason": "max_tokens",
            "usage": _in_out(usage),
        }
    message = (
        {"message": {"role": "assistant", "content": text}} if "chat" in path else {"text": text}
    )
    return {
        "id": "x",
        "choices": [{"index": 0, "finish_reason": "length", **message}],
        "usage": usage,
    }


def _unstreamed(path: str, body: Body, usage: Usage) -> Body | None:
    """Answer what has no stream: embeddings, pooling, reranking, tokens, switches; None: the
    path is unknown.
    """
    if path in SWITCHES:
        return {}
    counts = usage | {"total_tokens": usage["prompt_tokens"]}
    if path in ("/v1/embeddings", "/pooling"):
        asked = body.get("input", body.get("data", ""))
        several = (
            asked
            if isinstance(asked, list) and asked and not isinstance(asked[0], int)
            else [asked]
        )
        rows = [
            {"object": "embedding", "index": i, "embedding": [0.5], "data": [0.5]}
            for i in range(len(several))
        ]
        return {"object": "list", "data": rows, "usage": counts}
    if path in ("/v1/rerank", "/rerank", "/v2/rerank"):
        documents = body.get("documents")
        if not isinstance(body.get("query"), str) or not isinstance(documents, list):
            raise BadInput("documents", "query and documents are missing", "send both")
        return {
            "results": [{"index": i, "relevance_score": 0.5} for i in range(len(documents))],
            "usage": counts,
        }
    if path == "/tokenize":
        return {
            "tokens": list(range(counts["total_tokens"])),
            "count": counts["total_tokens"],
            "max_model_len": CONTEXT,
        }
    return None


def _texts(value: Any) -> Iterator[str]:
    """Yield all texts below a prompt, messages, input or query, and check the pictures among
    them.
    """
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        if value.get("type") == "image_url":
            _check_picture((value.get("image_url") or {}).get("url"))
        for key in ("content", "text", "query", "documents", "input"):
            yield from _texts(value.get(key))
    elif isinstance(value, list):
        yield from chain.from_iterable(map(_texts, value))


def _check_picture(url: Any) -> None:
    """Refuse a picture that is neither a file of the server's nor PNG or JPEG in a data URL.

    Raises:
        BadInput: It is not.
    """
    if str(url).startswith("file://"):
        return
    head, _, data = str(url).partition(";base64,")
    if not head.startswith("data:image/") or not base64.b64decode(data, validate=True).startswith(
        PICTURES
    ):
        raise BadInput("image_url", f"{head[:40]!r} is no PNG or JPEG", "send a data URL")


def _prompt_tokens(body: Body) -> int:
    """Count the ids, or the words, of a prompt.

    Raises:
        BadInput: There is none, or it is longer than the context.
    """
    names = ("messages", "prompt", "text", "input_ids", "input", "query", "data")
    prompt = next((body[name] for name in names if body.get(name)), None)
    if prompt is None:
        raise BadInput("prompt", "is missing", "send one")
    if isinstance(prompt, list) and all(isinstance(each, int) for each in prompt):
        tokens = len(prompt)
    else:
        tokens = sum(len(text.split()) for text in _texts([prompt, body.get("documents")]))
    if not tokens or tokens > CONTEXT:
        raise BadInput("prompt", f"has {tokens} tokens", f"send 1 to {CONTEXT}")
    return tokens


def _usage(body: Body) -> Usage:
    sampling = body.get("sampling_params") or {}
    asked = (
        body.get("max_completion_tokens"),
        body.get("max_tokens"),
        body.get("max_output_tokens"),
    )
    tokens = next(
        (each for each in (*asked, sampling.get("max_new_tokens")) if each is not None), 16
    )
    if not isinstance(tokens, int) or tokens < 1:
        raise BadInput("max_tokens", f"{tokens!r} is not a number of tokens", "send 1 or more")
    prompt = _prompt_tokens(body)
    return {"prompt_tokens": prompt, "completion_tokens": tokens, "total_tokens": prompt + tokens}


@dataclass(frozen=True, slots=True)
class Asked:
    """A POST.

    Attributes:
        path: Its path.
        body: Its JSON; empty for a switch.
    """

    path: str
    body: Body


@dataclass
class WildServer:
    """The server, as a test sees it.

    Attributes:
        port: Its port on 127.0.0.1.
        asked: All POSTs, in the order of their arrival.
    """

    port: int = 0
    asked: list[Asked] = field(default_factory=list)


class WildConnection(ServerConnection):
    """One connection.

    Args:
        asked: Gets each POST.
    """

    def __init__(self, asked: list[Asked]) -> None:
        super().__init__()
        self._asked = asked

    def handle(self, request: Request) -> None:
        """Note and answer a request."""
        path = request.path
        if request.method == "GET":
            self.reply(orjson.dumps(GETS.get(path, {})), status=200 if path in GETS else 404)
            return
        body = {} if path in SWITCHES else request.json
        self._asked.append(Asked(path, body))
        usage = {} if path in SWITCHES else _usage(body)
        if path not in STREAMS:
            answer = _unstreamed(path, body, usage)
            unknown = error_body(f"unknown path {path}", 404)
            self.reply(
                unknown if answer is None else orjson.dumps(answer),
                status=404 if answer is None else 200,
            )
        elif body.get("stream"):
            self._task = asyncio.ensure_future(self._stream(STREAMS[path](body, usage)))
        else:
            self.reply(orjson.dumps(_whole(path, usage)))

    async def _stream(self, events: Iterator[bytes]) -> None:
        self.transport.write(STREAM)
        await asyncio.sleep(FIRST_S)
        for event in events:
            self.transport.write(chunk(event))
            await asyncio.sleep(GAP_S)
        self.transport.write(LAST_CHUNK)
        self.finish()


@contextlib.contextmanager
def serving() -> Iterator[WildServer]:
    """Run the server in a thread of its own while the context lasts."""
    wild, loop, listening = WildServer(), asyncio.new_event_loop(), threading.Event()

    async def serve() -> None:
        server = await loop.create_server(
            lambda: WildConnection(wild.asked), "127.0.0.1", 0, backlog=512
        )
        wild.port = server.sockets[0].getsockname()[1]
        listening.set()
        await ended.wait()
        server.close()

    ended = asyncio.Event()
    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    try:
        listening.wait()
        yield wild
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join()
        loop.close()
