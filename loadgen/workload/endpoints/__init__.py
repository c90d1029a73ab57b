"""The registry of APIs, by the name in `--backend`.

An API is an `Api`. The built-in ones are listed in `config.backends`; other packages add theirs
through the entry-point group `loadgen.endpoints`.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from loadgen.config.backends import BACKENDS
from loadgen.config.request_check import check_fields
from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput, setting
from loadgen.util import packages
from loadgen.workload.endpoints.api import Api, Counts

__all__ = ["Api", "Counts", "check_row_fields", "checked", "find", "name_of", "named"]

GROUP = "loadgen.endpoints"
NOT_MEASURED = {  # backends of vLLM that loadgen does not have, and what their requests hold
    "openai-audio": "audio",
    **dict.fromkeys(
        ("openai-embeddings-clip", "openai-embeddings-vlm2vec", "infinity-embeddings-clip"),
        "embeddings of images",
    ),
}
MEANT = {  # what vLLM, SGLang, guidellm, AIPerf and others call these APIs, with - for _
    **dict.fromkeys(
        (
            *("chat", "chat-completions", "openai-chat-completions", "openai-http", "tgi"),
            *("vllm-chat", "sglang-oai-chat", "lmdeploy-chat", "tensorrt-llm", "trt"),
        ),
        "openai-chat",
    ),
    **dict.fromkeys(
        ("completion", "completions", "text-completions", "openai-completions", "sglang-oai"),
        "openai",
    ),
    **dict.fromkeys(("embeddings", "nim-embeddings", "sglang-embedding"), "openai-embeddings"),
    **dict.fromkeys(
        ("rerank", "rankings", "cohere-rankings", "nim-rankings", "hf-tei-rankings"),
        "vllm-rerank",
    ),
    "chat-embeddings": "openai-embeddings-chat",
    "responses": "openai-responses",
    "messages": "anthropic",
    "generate": "sglang-native",
    "pooling": "vllm-pooling",
}


def find(settings: RunSettings) -> Api:
    """Find the API of the settings: by backend, else by path.

    Raises:
        BadInput: The backend is unknown, or cannot be imported.
    """
    return named(name_of(settings))


def name_of(settings: RunSettings) -> str:
    """Return the backend of the settings, or the built-in one that their path means."""
    path = settings.endpoint_path
    if settings.backend is not None or path is None:
        return settings.backend or "openai"
    return next((name for name, ending in _endings() if path.endswith(ending)), "openai")


def checked(settings: RunSettings) -> RunSettings:
    """Check every value, and whether their API can send them; return the settings.

    Raises:
        BadInput: The first value that cannot be used; nothing has been sent or written.
    """
    api, path = find(settings.checked()), settings.endpoint_path
    if path is not None and not path.endswith(api.ending):
        problem = f"{name_of(settings)} is not the API of the endpoint {path}"
        raise BadInput(
            setting.backend, problem, f"leave it out, or name an endpoint ...{api.ending}"
        )
    for name, ending in _endings():
        if path is not None and path.endswith(ending) and not api.path.endswith(ending):
            problem = f"{settings.backend} is not the API of the endpoint {path}"
            raise BadInput(
                setting.backend, problem, f"leave it out, or use {setting.backend} {name}"
            )
    _check_fields(setting.extra_body, settings.extra_body or {}, api)
    if settings.no_max_tokens and api.needs_length:
        problem = f"{name_of(settings)} needs a maximum of tokens in each request"
        raise BadInput(setting.no_max_tokens, problem, "leave it out, or use openai-chat")
    if settings.disable_stream and api.dialect is not None:
        problem = f"answers of {name_of(settings)} are read as streams alone"
        raise BadInput(
            setting.disable_stream,
            problem,
            "leave it out, or use openai-chat, openai or sglang-native",
        )
    if settings.continuous_usage and api.counts is Counts.AT_END:
        problem = f"{name_of(settings)} counts the tokens of an answer only at its end"
        raise BadInput(setting.continuous_usage, problem, "leave it out")
    return settings


def check_row_fields(where: str, body: dict[str, Any], settings: RunSettings) -> None:
    """Check fields that a row of a file merges into the body of its request.

    Raises:
        BadInput: One of them would change what loadgen itself decides of a request.
    """
    check_fields(where, body, disable_stream=settings.disable_stream)
    _check_fields(where, body, find(settings))


def _check_fields(where: str, body: dict[str, Any], api: Api) -> None:
    for field in api.prompt_fields & body.keys():
        raise BadInput(
            where,
            f"{field} would replace every prompt",
            f"give prompts with {setting.dataset_name}",
        )
    if api.length_field in body | body.get("sampling_params", {}):
        problem = f"{api.length_field} would replace the output length that is asked"
        raise BadInput(
            where, problem, f"give {setting.random_output_len}, or output_tokens in a row"
        )


def _endings() -> Iterator[tuple[str, str]]:
    """Yield the built-in backends that own an ending of paths, each with it."""
    return ((name, ending) for name in BACKENDS if (ending := named(name).ending))


def _remedy(name: str, known: Sequence[str]) -> str:
    """Return what to give instead of an unknown backend, of these that are known."""
    import difflib  # not before: it is slow to import

    spelled = name.lower().replace("_", "-")
    near = [MEANT[spelled]] if spelled in MEANT else difflib.get_close_matches(spelled, known, 1)
    return f"did you mean {near[0]}?" if near else f"choose from {', '.join(known)}"


@cache
def named(name: str) -> Api:
    """Find an API by the name of its backend.

    Raises:
        BadInput: The name is unknown, or cannot be imported.
    """
    if name in BACKENDS:
        built_in: Api = packages.built_in(BACKENDS[name].place)
        return built_in
    if name in NOT_MEASURED:
        problem = f"{name} is for {NOT_MEASURED[name]}, which loadgen does not send"
        raise BadInput(setting.backend, problem, "use vLLM's own tool for it")
    installed = packages.installed(GROUP)
    if name not in installed.names:
        known = [*BACKENDS, *sorted(installed.names - BACKENDS.keys())]
        raise BadInput(setting.backend, f"unknown value {name!r}", _remedy(name, known))
    api = packages.load(setting.backend, installed[name])
    if not isinstance(api, Api):
        raise BadInput(
            setting.backend, f"{name!r} is not an Api", "repair the package that adds it"
        )
    return api
