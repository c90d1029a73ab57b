"""The server of a job, as settings of a run: --target, --model, --processor and --backend-kwargs."""

from typing import Any

from loadgen.config.target import CHAT_ENDPOINT, COMPLETIONS_ENDPOINT
from loadgen.errors import BadInput
from loadgen.lab.gpustack.numbers import number

HANDLERS = (CHAT_ENDPOINT, "chat_completions", "chat_completions_with_reasoning")  # reasoning tokens always count


def settings_of(given: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of `RunSettings` for the server.

    Args:
        given: The flags, as `arguments.parse` returns them.

    Raises:
        BadInput: The server is missing, or a flag is not supported.
    """
    backend = dict(given.get("backend_kwargs", {}))
    url = given.get("target") or backend.pop("target", None)
    if not url:
        raise BadInput("--target", "missing", "name the server, for example http://127.0.0.1:8000")
    chat = given.get("request_type") != "text_completions"
    settings = {"base_url": url, "backend": "openai-chat" if chat else "openai"}
    settings["endpoint"] = CHAT_ENDPOINT if chat else COMPLETIONS_ENDPOINT
    if model := given.get("model") or backend.pop("model", None):
        settings["model"] = model
    if "processor" in given:
        settings["tokenizer"] = given["processor"]
    if unknown := set(given.get("processor_args", {})) - {"trust_remote_code"}:
        raise BadInput(f"--processor-args {min(unknown)}", "not supported", "leave it out")
    return settings | _backend(backend)


def _backend(given: dict[str, Any]) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for key, value in given.items():
        match key:
            case "timeout":  # in guidellm it bounds every read: the first one, and later silence
                patience = number(value or 0, "--first-token-timeout")
                settings |= {"first_token_timeout": patience, "stall_timeout": patience}
            case "api_key":
                settings["api_key"] = value
            case "verify":
                settings["insecure"] = not value
            case "api_routes":  # where guidellm asks whether the server is alive: a run asks the API itself
                pass
            case "request_handlers" | "response_handlers" if _handled(value):
                pass
            case _:
                remedy = "leave it out: timeout, api_key, verify and the handlers of chat completions are supported"
                raise BadInput(f"--backend-kwargs {key}", f"{value!r} is not supported", remedy)
    return settings


def _handled(handlers: Any) -> bool:
    return isinstance(handlers, dict) and all(name in HANDLERS for name in (*handlers, *handlers.values()))
