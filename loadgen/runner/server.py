"""The server that is measured: one, or several as if they were one; probed before a run."""

import asyncio
import logging
import os
import re
import time
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct, field
from msgspec.structs import replace

from loadgen.config.data import BUILT_IN_TOKENIZER
from loadgen.config.settings import RunSettings
from loadgen.config.target import AIOHTTP, BALANCE, IGNORE_EOS
from loadgen.errors import BadInput, EngineError, Unreachable, setting
from loadgen.metrics.progress import OnProgress, Progress
from loadgen.runner.preflight import (
    NO_KEY,
    Preflight,
    Refusal,
    choice_of_models,
    raise_no_key,
)
from loadgen.util import http_client
from loadgen.util.number_format import first_of
from loadgen.util.redaction import Redaction, secrets
from loadgen.workload import endpoints, target
from loadgen.workload.chat_template.template_tokens import TemplateTokens
from loadgen.workload.endpoints.api import LORA_PATH
from loadgen.workload.tokenizer import tokenizer as tokenizers

MAX_NAMED = 5  # models of a server
HUB_NAME = re.compile(r"\w[\w.-]*/\w[\w.-]*")
# the owner of the simulator's model, also where it was not started for the run
OWNER = "loadgen-simulator"
NO_LIST = http_client.Reply(404, b"", {})  # of a server that lists no models


class Server(Struct, frozen=True):
    """A server, or several that share the requests of a run.

    Attributes:
        settings: The run's settings, with what the server decides filled in.
        model: The model's name in requests.
        about: Facts for the result.
        simulated: Whether it is loadgen's simulator.
        processes: The engines started for the run, one for each target.
        template_tokens: Tokens that its chat template adds to a prompt; None: unknown.
        models: The models that it lists.
        answered: Whether a test request to it succeeded before.
    """

    settings: RunSettings
    model: str
    about: dict[str, Any] = field(default_factory=dict)
    simulated: bool = False
    processes: tuple[Any, ...] = ()
    template_tokens: TemplateTokens | None = None
    models: tuple[str, ...] = ()
    answered: bool = False

    def for_first_run(self) -> "Server":
        """Return it for the run that begins now, which needs no second test request."""
        if not self.answered:
            return self
        return replace(self, settings=self.settings.replace(ready_check_timeout_sec=0.0))

    async def flush(self) -> list[str]:
        """Empty the caches of its engines before another run: a small data set repeats its prompts.

        Returns:
            An error for each that did not.
        """
        errors = []
        for process in self.processes:
            try:
                await asyncio.to_thread(process.flush)
            except EngineError as error:
                errors.append(str(error))
        return errors


async def probe(settings: RunSettings, on_progress: OnProgress = lambda progress: None) -> Server:
    """Probe every server that the settings name: all of them must answer, and have the model.

    If the settings have a timeout of the ready check, wait as long for an answer.

    Args:
        settings: The settings of the run.
        on_progress: Called while the probe waits.

    Returns:
        The server, or all of them as if they were one.

    Raises:
        Unreachable: One does not answer; the first that is named.
        BadInput: One is named twice, or does not have the model; or no model is named and their
            first ones differ.
    """
    server_settings = settings.apart()
    if len(server_settings) == 1:
        return await _probe_one(settings, on_progress)
    places = set()
    for single in server_settings:
        url = target.base_url(single)
        place = target.origin(url), urlsplit(url).path
        if place in places:
            raise BadInput(setting.base_url, f"{url} is given twice", "name each server once")
        places.add(place)
    probes = (_probe_one(single, on_progress) for single in server_settings)
    outcomes = await asyncio.gather(*probes, return_exceptions=True)
    servers: list[Server] = []
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
        servers.append(outcome)
    urls = _urls_by([server.model for server in servers], servers)
    if len(urls) > 1:
        problem = f"the servers have different ones first: {_listed(urls)}"
        raise BadInput(setting.model, problem, "name one that all of them have")
    return _as_one(settings, servers)


async def _probe_one(settings: RunSettings, on_progress: OnProgress) -> Server:
    """Probe the one server that the settings name.

    Raises:
        Unreachable: It does not answer.
        BadInput: It does not have the model.
    """
    base = target.base_url(settings)
    named = settings.served_model_name or settings.model or target.deployment(settings)
    url = target.models_url(settings)
    reply = NO_LIST if url is None else await _first_answer(url, settings, on_progress)
    headers = target.headers_of_get(settings, url or base)
    redacted = Redaction(headers)
    asks_first = settings.preflight is not False
    if reply.status in NO_KEY and not (named and secrets(headers) and asks_first):
        # A key may be for models alone: the preflight then shows whether it is accepted.
        raise_no_key(settings, Refusal.of(reply, redacted) or Refusal(reply.status, ""), headers)
    answer = reply.json()
    rows = _rows(answer) if reply.status == 200 else {}
    listed = list(rows)
    if named is None and not listed:
        problem = f"{url} lists no model (status {reply.status})"
        raise BadInput(setting.model, problem, "name the model, if it is an LLM server")
    name = named or listed[0]
    simulated = any(row.get("owned_by") == OWNER for row in rows.values())
    # Not every server lists all its names: the preflight shows whether it has this one.
    if listed and name not in listed and (simulated or not asks_first):
        field_name = setting.served_model_name if settings.served_model_name else setting.model
        problem = f"the server at {base} has no model {name!r}"
        raise BadInput(field_name, problem, choice_of_models(listed))
    _require_models_of_classes(settings, base, listed)
    model = settings.model or name
    root = None if settings.served_model_name else _usable(rows.get(name, {}).get("root"))
    chooses = settings.backend is None and settings.endpoint is None
    is_anthropic = chooses and _is_anthropic(answer)
    backend = "anthropic" if is_anthropic else endpoints.name_of(settings)
    counts = endpoints.named(backend).counts
    resolved = settings.implied(
        model=model,
        tokenizer=settings.tokenizer or root or model,
        backend=backend,
        continuous_usage=settings.continuous_usage and counts is endpoints.Counts.AS_ASKED,
    )
    preflight = Preflight(resolved, name, listed, on_progress)
    if asks_first and not simulated:  # the simulator takes everything
        await preflight.ask(chooses=chooses)
    if preflight.changes:
        logging.warning("%s: %s", base, "; ".join(preflight.changes))
    resolved = preflight.settings
    if listed and name not in listed and not preflight.is_hosted:
        known = first_of([repr(each) for each in listed], MAX_NAMED)
        logging.warning("%s answers as %r, a model that it does not list: %s", base, name, known)
    if settings.tokenizer is None:
        resolved = await _with_tokenizer(resolved)
    server_header, version = reply.headers.get("Server"), None
    if not preflight.is_hosted:
        version = await _version(base, settings)
    elif resolved.server_metrics == ():
        resolved = resolved.replace(server_metrics=("off",))
    about: dict[str, Any] = {
        "base_url": base,
        "server_header": server_header and redacted(server_header),
        "version": version and redacted(version),
        **preflight.about,
    }
    if way := str(target.route(settings)):
        about["way"] = way
    if settings.continuous_usage and not resolved.continuous_usage:
        about["continuous_usage"] = "refused"
    return Server(
        resolved, name, about, simulated, models=tuple(listed), answered=preflight.answered
    )


def _rows(answer: Any) -> dict[str, dict[str, Any]]:
    """Return the rows of a list of models, by the id of the model."""
    models = answer.get("data") if isinstance(answer, dict) else None
    return {
        str(model["id"]): model
        for model in models or []
        if isinstance(model, dict) and "id" in model
    }


async def _with_tokenizer(settings: RunSettings) -> RunSettings:
    """Return settings with tiktoken's encoding of the model, or loadgen's own tokenizer, if that
    of the model is not to be had.
    """
    name = settings.tokenizer
    if name is None or not settings.adapts:
        return settings
    if await asyncio.to_thread(tokenizers.is_available, name):
        return settings
    encoding = await asyncio.to_thread(tokenizers.of_openai, settings.model or name)
    return settings.replace(tokenizer=encoding or BUILT_IN_TOKENIZER)


def _is_anthropic(answer: Any) -> bool:
    """Return whether an answer to a list of models has the form of Anthropic's API."""
    if not isinstance(answer, dict):
        return False
    if answer.get("type") == "error":
        return isinstance(answer.get("error"), dict)
    rows = answer.get("data")
    return isinstance(rows, list) and any(
        isinstance(row, dict) and row.get("type") == "model" and "display_name" in row
        for row in rows
    )


async def _first_answer(
    url: str, settings: RunSettings, on_progress: OnProgress
) -> http_client.Reply:
    """Return the answer to a list of models; no answer, or a 5xx, is waited out for the time of the
    ready check.

    Raises:
        Unreachable: The server did not answer in that time.
    """
    limit_s = settings.ready_check_timeout_sec
    begun = time.monotonic()
    while True:
        is_over = time.monotonic() - begun >= limit_s
        try:
            reply = await http_client.get(
                url, headers=target.headers_of_get(settings, url), route=target.route(settings)
            )
        except Unreachable as error:
            if is_over and error.advises:
                raise
            if is_over:
                raise Unreachable(
                    f"{error}; start the server, or name another with {setting.base_url}"
                ) from error
            note = str(error)
        else:
            if is_over or reply.status < 500:
                return reply
            note = f"{url} answers {reply.status}"
        on_progress(Progress("waiting", time.monotonic() - begun, note=note))
        await asyncio.sleep(min(1.0, limit_s / 10))


def _require_models_of_classes(settings: RunSettings, base: str, listed: Sequence[str]) -> None:
    """Refuse a class whose model the server does not list.

    A server that lists nothing may have it. So may one with adapters (`--lora-modules`): it may
    load them at their first request, or get their names in another field.
    """
    fields = (endpoints.find(settings).adapter_field, *(settings.extra_body or ()))
    if LORA_PATH in fields or not listed:
        return
    for request_class in settings.request_classes if settings.classes else ():
        if request_class.model is not None and request_class.model not in listed:
            problem = f"the server at {base} has no model {request_class.model!r}"
            raise BadInput(
                (setting.classes, request_class.name),
                problem,
                f"choose from {', '.join(map(repr, listed[:10]))}",
            )


def _usable(root: Any) -> str | None:
    """Return the root of a model if it has a tokenizer here: a folder on this machine, or a name
    on the hub.
    """
    if not isinstance(root, str):
        return None
    has_tokenizer = os.path.isabs(root) and os.path.isfile(os.path.join(root, "tokenizer.json"))
    return root if has_tokenizer or HUB_NAME.fullmatch(root) else None


async def _version(base: str, settings: RunSettings) -> str | None:
    try:
        reply = await http_client.get(
            f"{base}/version", route=target.route(settings), timeout_s=2.0
        )
    except Unreachable:
        return None
    answer = reply.json() if reply.status == 200 else None
    return str(answer["version"]) if isinstance(answer, dict) and "version" in answer else None


def _as_one(settings: RunSettings, servers: Sequence[Server]) -> Server:
    """Combine servers that share the requests of a run."""
    versions = [version for server in servers if (version := server.about.get("version"))]
    about: dict[str, Any] = {
        "targets": [server.about for server in servers],
        "version": " and ".join(dict.fromkeys(versions)) if len(versions) == len(servers) else None,
    }
    versions_urls = _urls_by(
        [server.about.get("version") or "unknown" for server in servers], servers
    )
    models_urls = _urls_by([", ".join(server.models) or "none" for server in servers], servers)
    quantities = {"their versions": versions_urls, "the models that they list": models_urls}
    differ = [
        f"{quantity}: {_listed(urls)}" for quantity, urls in quantities.items() if len(urls) > 1
    ]
    if differ:
        about["differ"] = differ
        logging.warning("--base-url: the servers differ in %s", "; ".join(differ))
    continuous_usage = all(server.settings.continuous_usage for server in servers)
    if settings.continuous_usage and not continuous_usage:  # one file of bodies serves all
        about["continuous_usage"] = "refused"
    backends = _urls_by([server.settings.backend or "" for server in servers], servers)
    if len(backends) > 1:
        problem = f"the servers have different APIs: {_listed(backends)}"
        raise BadInput(setting.backend, problem, "name one that all of them have")
    omit = tuple(dict.fromkeys(name for server in servers for name in server.settings.omit))
    compressed = any(server.settings.transport == AIOHTTP for server in servers)
    resolved = servers[0].settings.replace(
        base_url=settings.base_url,
        balance=settings.balance or BALANCE,
        continuous_usage=continuous_usage,
        transport=AIOHTTP if compressed else settings.transport,
        omit=omit,
        ignore_eos=False if IGNORE_EOS in omit else servers[0].settings.ignore_eos,
    )
    simulated = any(server.simulated for server in servers)
    answered = all(server.answered for server in servers)
    return replace(
        servers[0], settings=resolved, about=about, simulated=simulated, answered=answered
    )


def _urls_by(values: Sequence[str], servers: Sequence[Server]) -> dict[str, list[str]]:
    """Return each value with the URLs of the servers that have it."""
    urls: dict[str, list[str]] = {}
    for value, server in zip(values, servers, strict=True):
        urls.setdefault(value, []).append(server.about["base_url"])
    return urls


def _listed(urls: dict[str, list[str]]) -> str:
    """List values, each with its URLs."""
    return "; ".join(f"{value} at {', '.join(of_value)}" for value, of_value in urls.items())
