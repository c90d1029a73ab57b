"""Server: who is to be measured, and what it tells of itself."""

import asyncio
import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput, Unreachable
from loadgen.metrics.progress import Progress
from loadgen.util import http_client
from loadgen.util.redaction import Redaction
from loadgen.workload import target
from loadgen.workload.chat_template.overhead import Overhead
from loadgen.workload.prompt import Prompt

HUB_NAME = re.compile(r"\w[\w.-]*/\w[\w.-]*")
OWNER = "loadgen-simulator"  # whom the simulator names as that of its model, wherever and by whomever it was started


@dataclass(frozen=True)
class Server:
    """A server as the run sees it.

    Attributes:
        settings: The run's settings with what the server decides filled in.
        model: The model's name in requests.
        about: What is known of it, for the result.
        simulated: Whether it is loadgen's simulator.
        processes: The engines started for the run, one for each target.
        overhead: What its chat template adds to a prompt, where that is known of the engine.
        models: Those that it lists.
    """

    settings: RunSettings
    model: str
    about: dict[str, Any] = field(default_factory=dict)
    simulated: bool = False
    processes: tuple[Any, ...] = ()
    overhead: Overhead | None = None
    models: tuple[str, ...] = ()


async def running(settings: RunSettings, on_progress: Callable[[Progress], None] = lambda progress: None) -> Server:
    """Probe the one server that the settings name; where a test request is asked for, wait as long for an answer.

    Raises:
        Unreachable: Nothing answers there.
        BadInput: It does not have the model.
    """
    base = target.base_url(settings)
    reply = await _first_answer(base, settings, on_progress)
    if reply.status in (401, 403):
        raise BadInput(
            "--api-key", f"the server at {base} answers {reply.status}", "give its key, or set OPENAI_API_KEY"
        )
    rows = _models(reply)
    listed = list(rows)
    asked = settings.served_model_name or settings.model
    if asked is None:
        if not listed:
            field_name, remedy = "--model", "name the model, if it is an LLM server"
            if base.endswith("/v1"):
                field_name, remedy = "--base-url", "leave /v1 out of it"
            raise BadInput(field_name, f"{base}/v1/models lists no model (status {reply.status})", remedy)
        asked = listed[0]
    elif listed and asked not in listed:
        field_name = "--served-model-name" if settings.served_model_name else "--model"
        remedy = (
            f"choose from {', '.join(map(repr, listed[:10]))} (with --served-model-name where the tokenizer is another)"
        )
        raise BadInput(field_name, f"the server at {base} has no model {asked!r}", remedy)
    model = settings.model or asked
    backend = settings.backend or ("openai-chat" if target.is_chat(settings) else "openai")
    own = None if settings.served_model_name else _usable(rows.get(asked, {}).get("root"))
    resolved = settings.replace(model=model, tokenizer=settings.tokenizer or own or model, backend=backend)
    told = {"server_header": reply.headers.get("Server"), "version": await _version(base, settings)}
    redacted = Redaction(target.headers(settings))
    about: dict[str, Any] = {"base_url": base} | {name: value and redacted(value) for name, value in told.items()}
    if resolved.continuous_usage and not await _takes_continuous_usage(resolved, asked):
        resolved = resolved.replace(continuous_usage=False)
        about["continuous_usage"] = "refused"
    simulated = any(row.get("owned_by") == OWNER for row in rows.values())
    return Server(resolved, asked, about, simulated, models=tuple(listed))


async def _first_answer(base: str, settings: RunSettings, on_progress: Callable[[Progress], None]) -> http_client.Reply:
    """What the server lists, once it does: until the ready check's time is over none, and a 5xx, are not its answer.

    Raises:
        Unreachable: Nothing answered in that time.
    """
    limit_s, begun = settings.ready_check_timeout_sec, time.monotonic()
    url, headers, verify_tls = f"{base}/v1/models", target.headers(settings), not settings.insecure
    while True:
        over = time.monotonic() - begun >= limit_s
        try:
            reply = await http_client.get(url, headers=headers, verify_tls=verify_tls)
        except Unreachable as error:
            if over:
                raise Unreachable(f"{error}; start the server, or name another with --base-url") from error
            note = str(error)
        else:
            if over or reply.status < 500:
                return reply
            note = f"{url} answers {reply.status}"
        on_progress(Progress("waiting", time.monotonic() - begun, note=note))
        await asyncio.sleep(min(1.0, limit_s / 10))


async def _takes_continuous_usage(settings: RunSettings, model: str) -> bool:
    """Ask for one token: a server that does not know the option must not refuse the whole run for it."""
    probed = target.Target.from_settings(settings, model)
    body = probed.body(Prompt("Hello", 1, 1, "probe"))
    reply = await http_client.post(probed.url, body, headers=probed.headers, verify_tls=probed.verify_tls)
    return reply.status not in (400, 422)


def _models(reply: http_client.Reply) -> dict[str, dict[str, Any]]:
    """The models that a server lists, by their `id`, with all that it tells of them."""
    listed = reply.json() if reply.status == 200 else None
    rows = listed.get("data") if isinstance(listed, dict) else None
    return {str(row["id"]): row for row in rows or [] if isinstance(row, dict) and "id" in row}


def _usable(root: Any) -> str | None:
    """What a server was started with, if a tokenizer of it can be had here: a folder on this machine, or a hub name."""
    if not isinstance(root, str):
        return None
    has_one = os.path.isabs(root) and os.path.isfile(os.path.join(root, "tokenizer.json"))
    return root if has_one or HUB_NAME.fullmatch(root) else None


async def _version(base: str, settings: RunSettings) -> str | None:
    try:
        reply = await http_client.get(f"{base}/version", verify_tls=not settings.insecure, timeout_s=2.0)
    except Unreachable:
        return None
    told = reply.json() if reply.status == 200 else None
    return str(told["version"]) if isinstance(told, dict) and "version" in told else None
