"""Readiness: whether a server answers with one real token, an embedding or a score, as the
requested model.

A ready server may also report its version and settings, which are compared with its command.
"""

import errno
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from loadgen.engines.kinds.engine import Probes
from loadgen.errors import EngineError, Unreachable
from loadgen.util.http_client import Reply, request

HEALTH_S = 5.0
# A healthy server that answers with one of these statuses will not change its mind.
REFUSALS = {400, 401, 403, 404, 405, 422}
# What a server is asked that completes nothing.
POOLED: dict[str, dict[str, Any]] = {
    "/v1/embeddings": {"input": "Hello"},
    "/pooling": {"input": "Hello"},
    "/rerank": {"query": "Hello", "documents": ["Hello"]},
}
Ask = Callable[[str, Any], Reply]  # POSTs a body to a URL


class NoNetwork(EngineError):
    """The address of the server has no network, such as 127.0.0.1 where the loopback interface
    is down.
    """


class BadHealth(EngineError):
    """The server answers that its health is bad."""


class NoToken(EngineError):
    """A healthy server has answered a prompt, and its answer has no token."""


def health_problem(
    base_url: str, probes: Probes, timeout_s: float = HEALTH_S, on_wait: Callable[[], object] = int
) -> str | None:
    """Return why the server does not answer now; None if its health is good.

    Args:
        base_url: Scheme, host and port.
        probes: URL paths of the server.
        timeout_s: Limit for the answer, s.
        on_wait: Called twice a second meanwhile.

    Raises:
        BadHealth: It answers otherwise.
        NoNetwork: No request can reach it.
    """
    try:
        response = request(
            base_url + (probes.health or "/v1/models"), timeout_s=timeout_s, on_wait=on_wait
        )
    except Unreachable as error:
        if isinstance(error.__cause__, OSError) and error.__cause__.errno == errno.ENETUNREACH:
            raise NoNetwork(
                f"{error}; bring the network of that address up: ip link set lo up"
            ) from error
        return str(error)
    if probes.health and response.status != 200:
        raise BadHealth(f"{probes.health} answers {response}")
    return None


def readiness_problem(
    base_url: str,
    model: str,
    timeout_s: float,
    on_wait: Callable[[], object],
    chat: bool | None = None,
) -> str | None:
    """Return why a healthy server is not ready yet; None once it has answered with one token,
    embedding or score.

    Args:
        base_url: Scheme, host and port.
        model: The model's name in requests.
        timeout_s: For the token, s; the first one may take a minute.
        on_wait: Called twice a second meanwhile.
        chat: Whether to ask a chat, or a completion; None: what the server has.

    Raises:
        NoToken: It has answered without a token.
        EngineError: It will never be ready: it refuses the request, or serves other models.
    """
    try:
        response = request(f"{base_url}/v1/models", on_wait=on_wait)
        body = response.json() if response.status == 200 else None
        rows = body.get("data") if isinstance(body, dict) else None
        models = [str(row["id"]) for row in rows or [] if isinstance(row, dict) and "id" in row]
        ask = partial(request, timeout_s=timeout_s, on_wait=on_wait)
        if models and model not in models:
            served = ", ".join(map(repr, models))
            raise EngineError(f"the server has {served} and not {model!r}; name one of its models")
        response = _request_token(ask, base_url, model, chat)
        if response.status in REFUSALS and any(
            ask(base_url + path, {"model": model} | fields).status == 200
            for path, fields in POOLED.items()
        ):
            return None
    except Unreachable as error:
        return str(error)
    subject = "a chat" if chat else "a completion"
    if response.status in REFUSALS:
        raise EngineError(f"the server refuses {subject} as {model!r}: {response}")
    if response.status != 200:
        return f"{subject} answers {response}"
    if not _has_token(response.json()):
        raise NoToken(f"{subject} has no token: {response}")
    return None


def _request_token(ask: Ask, base_url: str, model: str, chat: bool | None) -> Reply:
    fields: dict[str, Any] = {"model": model, "max_tokens": 1}
    if not chat:
        response = ask(f"{base_url}/v1/completions", fields | {"prompt": "Hello"})
        if chat is False or response.status not in REFUSALS:
            return response
    # Some servers have only chats, and some models have no chat template.
    messages = fields | {"messages": [{"role": "user", "content": "Hello"}]}
    return ask(f"{base_url}/v1/chat/completions", messages)


def _has_token(body: Any) -> bool:
    """Return whether an answer has text or counts a token; a single token may have no text."""
    if not isinstance(body, dict):
        return False
    usage = body.get("usage")
    choices = body.get("choices")
    if isinstance(usage, dict) and usage.get("completion_tokens"):
        return True
    for choice in choices if isinstance(choices, list) else ():
        message = choice.get("message") or {} if isinstance(choice, dict) else {}
        texts = [message.get(key) for key in ("content", "reasoning", "reasoning_content")]
        if isinstance(choice, dict) and any([choice.get("text"), *texts]):
            return True
    return False


@dataclass(frozen=True, slots=True)
class Difference:
    """A setting for which the server reports another value than its command requests.

    Attributes:
        name: Name of the flag, with underscores; or `version`.
        requested: Value in the command; for the version, the installed one.
        reported: Value that the server reports.
    """

    name: str
    requested: str
    reported: str

    def __str__(self) -> str:
        return f"{self.name}: {self.requested} was requested, the server has {self.reported}"


def differences(argv: Sequence[str], reported: Any) -> list[Difference]:
    """Return the flags of a command for which the server reports another value.

    Only flags with one value can be compared, and only if the server reports the same name, at any
    depth. If it reports a name several times, one equal value is enough.

    Args:
        argv: The command.
        reported: The JSON of the engine's `resolved` probe.
    """
    values: dict[str, list[Any]] = {}
    for name, value in _leaves(reported):
        values.setdefault(name, []).append(value)
    return [
        Difference(name, requested, ", ".join(map(str, values[name])))
        for name, requested in _flags(argv)
        if name in values and not any(_equal(requested, value) for value in values[name])
    ]


def reported_version(reported: Any) -> str | None:
    """Return the version in the JSON of an engine's `version` probe; None if there is none or it
    is "unknown".
    """
    for key in ("version", "build_info", "server_version"):
        for name, value in _leaves(reported):
            if name == key and isinstance(value, str) and "unknown" not in value:
                return value
    return None


def _flags(argv: Sequence[str]) -> Iterator[tuple[str, str]]:
    for flag, following in zip(argv, [*argv[1:], "--"], strict=True):
        name, equals, value = flag.partition("=")
        if not name.startswith("--"):
            continue
        if not equals:
            value = following
        if equals or not following.startswith("--"):
            yield name[2:].replace("-", "_"), value


def _leaves(reported: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(reported, Mapping):
        for key, value in reported.items():
            yield from _leaves(value, str(key).replace("-", "_"))
    elif isinstance(reported, list):
        for value in reported:
            yield from _leaves(value, name)
    elif reported is not None:
        yield name, reported


def _equal(requested: str, reported: Any) -> bool:
    if isinstance(reported, bool):
        return requested.lower() == str(reported).lower()
    if isinstance(reported, int | float):
        try:
            return float(requested) == float(reported)
        except ValueError:
            return False
    return requested.lower() == str(reported).lower()
