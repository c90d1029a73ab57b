"""Ready: whether a server answers: with one real token, as the model that was asked for."""

from collections.abc import Callable
from typing import Any

from loadgen.engines.ask import Answer, ask
from loadgen.engines.engine import Probes
from loadgen.errors import EngineError, Unreachable

HEALTH_S = 5.0
# A server that is up and says one of these will go on saying it.
REFUSALS = {400, 401, 403, 404, 405, 422}


def trouble(
    base_url: str, probes: Probes, timeout_s: float = HEALTH_S, meanwhile: Callable[[], object] = int
) -> str | None:
    """Why the server cannot be asked now; None if it can, as far as its health tells."""
    try:
        answer = ask(base_url + (probes.health or "/v1/models"), timeout_s=timeout_s, meanwhile=meanwhile)
    except Unreachable as error:
        return str(error)
    return f"{probes.health} answers {answer}" if probes.health and answer.status != 200 else None


def silence(base_url: str, model: str, probes: Probes, timeout_s: float, meanwhile: Callable[[], object]) -> str | None:
    """Why the server does not answer yet; None once it has given one token.

    Args:
        base_url: Scheme, host and port.
        model: Its name in requests.
        probes: How to ask for its health.
        timeout_s: For the token, once it is healthy: the first may take a minute.
        meanwhile: Called twice a second while it is waited for.

    Raises:
        EngineError: It never will: it refuses the request, or serves other models.
    """
    ill = trouble(base_url, probes, meanwhile=meanwhile)
    if ill is not None:
        return ill
    try:
        listed = _models(ask(f"{base_url}/v1/models", meanwhile=meanwhile))
        if listed and model not in listed:
            raise EngineError(f"it serves {', '.join(map(repr, listed))} and not {model!r}; name one of its models")
        answer = _one_token(base_url, model, timeout_s, meanwhile)
    except Unreachable as error:
        return str(error)
    if answer.status in REFUSALS:
        raise EngineError(f"it refuses to complete a prompt as {model!r}: {answer}")
    if answer.status != 200:
        return f"a completion answers {answer}"
    return None if _has_token(answer.json()) else f"a completion has no token: {answer}"


def _one_token(base_url: str, model: str, timeout_s: float, meanwhile: Callable[[], object]) -> Answer:
    asked = {"model": model, "max_tokens": 1}
    prompt = asked | {"prompt": "Hello"}
    answer = ask(f"{base_url}/v1/completions", prompt, timeout_s=timeout_s, meanwhile=meanwhile)
    if answer.status not in REFUSALS:
        return answer
    # Some have chats alone, and some models have no chat template.
    chat = asked | {"messages": [{"role": "user", "content": "Hello"}]}
    return ask(f"{base_url}/v1/chat/completions", chat, timeout_s=timeout_s, meanwhile=meanwhile)


def _has_token(told: Any) -> bool:
    """Whether the answer has text, or counts a token: one alone need not have any."""
    if not isinstance(told, dict):
        return False
    usage, choices = told.get("usage"), told.get("choices")
    if isinstance(usage, dict) and usage.get("completion_tokens"):
        return True
    for choice in choices if isinstance(choices, list) else ():
        message = choice.get("message") or {} if isinstance(choice, dict) else {}
        texts = [message.get(key) for key in ("content", "reasoning", "reasoning_content")]
        if isinstance(choice, dict) and any([choice.get("text"), *texts]):
            return True
    return False


def _models(answer: Answer) -> list[str]:
    told = answer.json() if answer.status == 200 else None
    rows = told.get("data") if isinstance(told, dict) else None
    return [str(row["id"]) for row in rows or [] if isinstance(row, dict) and "id" in row]
