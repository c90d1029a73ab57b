"""Settings of the target: the servers or the engine to start, the sampling parameters of requests,
and server calls.

Server calls are those beside the load: to the profiler, and what is called before the clock starts.
"""

import re
from collections.abc import Callable
from typing import Any, Literal

from loadgen.config.backends import BACKENDS, WITHOUT_TOKENS
from loadgen.config.option import (
    ENGINE,
    EVERYDAY,
    FIRST,
    FROM_1,
    POSITIVE,
    SAMPLING,
    SECONDS,
    TARGET,
    Form,
    Range,
    options_about,
    settings_class,
)
from loadgen.config.request_class import parse_skew
from loadgen.errors import BadInput, setting
from loadgen.util.redaction import HEADER_NAME, redact_user

Transport = Literal["compiled", "aiohttp"]
Balance = Literal["round-robin", "least-outstanding"]
# Fields of a body that a request can do without, and that servers may refuse: those that engines
# have beyond OpenAI's API, and those of OpenAI's. The limit of a chat's answer is then max_tokens.
IGNORE_EOS, MAX_COMPLETION_TOKENS, MAX_TOKENS = "ignore_eos", "max_completion_tokens", "max_tokens"
EXTENSIONS = (IGNORE_EOS, "min_tokens", "top_k", "min_p", "repetition_penalty")
OPTIONAL = (
    *EXTENSIONS,
    *("stream_options", MAX_COMPLETION_TOKENS, "temperature", "top_p"),
    *("frequency_penalty", "presence_penalty"),
)

# Sixteen accelerators, each split into seven, are the most in one machine.
MAX_REPLICAS = 128
NO_HEADER = "none"  # value of --session-header
AIOHTTP: Transport = "aiohttp"
BALANCE: Balance = "round-robin"  # the default
SIMULATOR = "sim"
FROM_ENVIRONMENT = "env"  # value of --proxy
_SERVER_SETTINGS = (
    *("base_url", "host", "port", "unix_socket", "engine"),
    *("model", "backend", "endpoint"),  # of the server at vLLM's own address
)
PROFILE_S = 5.0  # the default of --profile-duration, as in vllm-rs
# Headers that every request has, or that a connection sets.
OWN_HEADERS = (
    *("host", "connection", "content-length", "content-type", "transfer-encoding"),
    *("accept", "accept-encoding"),
)
engine_option = options_about(ENGINE)
sampling_option = options_about(SAMPLING)
target_option = options_about(TARGET)


def header_names(field: str, remedy: str) -> Callable[[str], None]:
    """Return a check that the text of a setting can be the name of a header of its own."""

    def check(name: str) -> None:
        if not HEADER_NAME.fullmatch(name):
            problem = f"{name!r} contains characters that are not allowed in a header's name"
            raise BadInput(setting(field), problem, remedy)
        if name.lower() in OWN_HEADERS:
            raise BadInput(setting(field), f"{name} is a header of every request", remedy)

    return check


def _check_urls(urls: tuple[str, ...]) -> None:
    for url in urls:
        if not re.fullmatch(r"https?://[!-~]+", url):
            problem = f"{redact_user(url)!r} is not a URL"
            raise BadInput(setting.profile_url, problem, "write http://HOST:PORT")


@settings_class
class TargetSettings:
    """Fields of the target, with the names and meanings of `vllm bench serve`.

    `base_url` is one URL or, for several targets that share the requests, a tuple.
    """

    base_url: str | tuple[str, ...] | None = target_option(
        None,
        "URL of the server, such as http://host:8000; with /v1 or without it, or that of an "
        "endpoint; replaces --host and --port; several, with --balance, share the load",
        metavar="URL",
        tier=FIRST,
    )
    balance: Balance | None = target_option(
        None, "how several --base-url share the requests (round-robin)"
    )
    host: str | None = target_option(
        None, "server host; with --engine, the address it listens on (127.0.0.1)", tier=EVERYDAY
    )
    port: int | None = target_option(
        None, "server port (8000)", tier=EVERYDAY, range=Range("1 to 65535", 1, 65535)
    )
    endpoint: str | None = target_option(
        None,
        "path of the API, with a query if it needs one (depends on --backend)",
        metavar="PATH",
        tier=EVERYDAY,
    )
    backend: str | None = target_option(
        None,
        "API: openai (completions), openai-chat, ...; openai-responses, anthropic, sglang-native "
        "(/generate), those for embeddings, pooling and rerank, or one that a package adds; "
        "without, openai, and openai-chat for the simulator",
        metavar="NAME",
        tier=FIRST,
    )
    model: str | None = target_option(
        None, "model name (the first model of the server)", tier=FIRST
    )
    served_model_name: str | None = target_option(
        None, "model name in requests, if it differs from --model", metavar="NAME"
    )
    lora_modules: tuple[str, ...] = target_option(
        (),
        "names of LoRA adapters; each request names one of them instead of the model",
        metavar="NAME",
    )
    lora_assignment: str | None = target_option(
        None,
        "adapter of a request: random, round-robin, or skewed:ALPHA, which draws each ALPHA times "
        "as often as the next (random)",
        metavar="RULE",
        needs="lora_modules",
        parse=parse_skew,
    )
    tokenizer: str | None = target_option(
        None,
        "tokenizer.json, its folder, or a hub name; without, the server's, or that of --model; "
        "built-in: loadgen's own, so lengths are approximate; none: only the server counts tokens",
        metavar="PATH|NAME|none",
        tier=FIRST,
    )
    header: tuple[str, ...] = target_option(
        (),
        "extra request headers, each Name=value, 'Name: value' as for curl, or Name=@FILE",
        metavar="NAME=VALUE|@FILE",
        tier=EVERYDAY,
    )
    api_key: str | None = target_option(
        None,
        "bearer token, or @FILE with it (OPENAI_API_KEY)",
        metavar="@FILE|KEY",
        tier=FIRST,
        excludes=("api_key_command",),
    )
    api_key_command: str | None = target_option(
        None,
        "command that prints the bearer token; it runs again when the token ends, or at status 401",
        metavar="CMD",
    )
    api_key_header: str | None = target_option(
        None,
        "header that holds the API key in place of a bearer token (api-key for deployments of "
        "Azure)",
        metavar="NAME",
        parse=header_names("api_key_header", "give a name such as api-key"),
    )
    request_id_prefix: str = target_option(
        "loadgen-",
        "prefix of every X-Request-Id; a unique part follows",
        metavar="TEXT",
        form=Form(
            HEADER_NAME.pattern,
            "{!r} contains characters that are not allowed in a header",
            "use letters, digits, - and _",
        ),
    )
    session_header: str = target_option(
        "X-Session-ID",
        "header with the id of the session, for routers that keep a session on one server; none: "
        "no header",
        metavar="NAME",
        parse=header_names("session_header", "give a name such as X-Session-ID, or none"),
    )
    session_token: str | None = target_option(
        None,
        "response header whose value the later turns of the session send back, for routers that "
        "choose a server at the first turn, such as x-session-token; set-cookie: cookies",
        metavar="HEADER",
        parse=header_names("session_token", "give a name such as x-session-token, or set-cookie"),
    )
    trace: bool = target_option(
        False,
        "send a traceparent header with each request, so that the server's spans join those of "
        "`loadgen report --otlp`",
    )
    insecure: bool = target_option(
        False,
        "do not verify TLS certificates",
        tier=EVERYDAY,
        excludes=("ca_cert",),
        why="trusts every certificate",
    )
    ca_cert: str | None = target_option(
        None,
        "PEM file of the authorities to trust (those of this machine)",
        metavar="FILE",
        tier=EVERYDAY,
    )
    client_cert: str | None = target_option(
        None, "PEM file with a certificate for servers that want one", metavar="FILE"
    )
    client_key: str | None = target_option(
        None,
        "PEM file with its private key (that in --client-cert)",
        metavar="FILE",
        needs="client_cert",
    )
    server_name: str | None = target_option(
        None, "name that the server's certificate has (the host of its URL)", metavar="NAME"
    )
    proxy: str | None = target_option(
        None,
        "HTTP proxy to reach the server through, by CONNECT: http://USER:PASSWORD@HOST:PORT, @FILE "
        "with that, or env for those that the environment names (none)",
        metavar="URL|@FILE|env",
    )
    unix_socket: str | None = target_option(
        None,
        "Unix socket on which the server listens",
        metavar="PATH",
        excludes=("proxy", "source_address", "ray"),
        why="is for a server on this machine",
    )
    transport: Transport = target_option(
        "compiled",
        "what sends and reads: compiled, with the kernel's times, or aiohttp, with times of "
        "reading, which also reads compressed answers and needs no CONNECT of a proxy",
    )
    server_metrics: tuple[str, ...] = target_option(
        (),
        "server metrics to scrape: URLs, auto (/metrics, if the server has it; the default) or off",
        metavar="URL|auto|off",
        tier=EVERYDAY,
    )
    extra_body: dict[str, Any] | None = target_option(
        None, "JSON object that is merged into every request body", metavar="JSON", tier=EVERYDAY
    )
    preflight: bool | None = target_option(
        None,
        "before the load, send a request of one token that finds the API and the fields that the "
        "server refuses; stop if it refuses the key or the model (on)",
    )
    adapt: bool | None = target_option(
        None,
        "change what the server refuses, and use loadgen's own tokenizer where the model's is "
        "missing; without, both are errors (on, except with --strict or --compat)",
        tier=EVERYDAY,
    )
    disable_stream: bool = target_option(
        False,
        "request each answer in one piece; its tokens then have no times, so only E2EL and rates "
        "are reported",
        tier=EVERYDAY,
    )
    content_parts: bool = target_option(
        False,
        "send the text of a chat as a list with one part, as `vllm bench serve` does, instead of "
        "a plain text",
    )
    continuous_usage: bool = target_option(
        False,
        "request usage with every event, to count its tokens; omitted if the server refuses it",
    )

    engine: str | None = engine_option(
        None,
        "engine to start for --model, and to stop after the run (`loadgen engines` lists them)",
        tier=EVERYDAY,
        excludes=("base_url", "port", "proxy", "unix_socket"),
        why="starts its own server",
    )
    engine_arg: tuple[str, ...] = engine_option(
        (),
        "knobs as NAME=VALUE, or flags of the engine, for example --engine-arg='--dtype half'",
        metavar="ARG",
        tier=EVERYDAY,
        needs="engine",
    )
    replicas: int = engine_option(
        1,
        "number of servers to start; they share the requests and --devices",
        metavar="N",
        range=Range(f"1 to {MAX_REPLICAS}", 1, MAX_REPLICAS),
        needs="engine",
    )
    devices: str | None = engine_option(
        None, "accelerators that the engine may use (all)", metavar="ID,ID", needs="engine"
    )
    engine_timeout: float = engine_option(
        600.0, "seconds for the engine to start", unit=SECONDS, range=POSITIVE
    )

    temperature: float | None = sampling_option(
        None, "sampling temperature (the server's default)", tier=EVERYDAY
    )
    top_p: float | None = sampling_option(None, "nucleus sampling", tier=EVERYDAY)
    top_k: int | None = sampling_option(None, "top-k sampling")
    min_p: float | None = sampling_option(None, "min-p sampling")
    frequency_penalty: float | None = sampling_option(None, "frequency penalty")
    presence_penalty: float | None = sampling_option(None, "presence penalty")
    repetition_penalty: float | None = sampling_option(None, "repetition penalty")
    ignore_eos: bool | None = sampling_option(
        None,
        "ask the server to generate past the end of the answer (on for random prompts)",
        tier=EVERYDAY,
        excludes=("no_max_tokens",),
        why="lets no answer end by itself",
    )
    no_max_tokens: bool = sampling_option(
        False,
        "send no maximum of tokens, so that every answer ends by itself, or at the server's own "
        "limit; the lengths of answers are then not asked",
    )

    omit: tuple[str, ...] = sampling_option(
        (),
        "fields that no request has, such as ignore_eos or stream_options; without "
        "max_completion_tokens, max_tokens limits a chat's answer (what the server refuses)",
        metavar="FIELD",
        form=Form(
            "|".join(OPTIONAL),
            "{!r} is no field that a request can do without",
            f"choose from {', '.join(OPTIONAL)}",
        ),
    )

    @property
    def urls(self) -> tuple[str, ...]:
        """All --base-url values; empty where the settings use --host and --port or their
        defaults.
        """
        if self.base_url is None:
            return ()
        return (self.base_url,) if isinstance(self.base_url, str) else self.base_url

    @property
    def endpoint_path(self) -> str | None:
        """The path of --endpoint, without its query; None if it is not given."""
        return None if self.endpoint is None else self.endpoint.partition("?")[0]

    @property
    def streams(self) -> bool:
        """Whether answers are streams of tokens, which come in one piece otherwise."""
        return self.generates and not self.disable_stream

    @property
    def generates(self) -> bool:
        """Whether answers have tokens; embeddings and scores have none."""
        if self.backend is not None:
            return self.backend not in WITHOUT_TOKENS
        endings = tuple(BACKENDS[name].ending for name in WITHOUT_TOKENS)
        return self.endpoint_path is None or not self.endpoint_path.endswith(endings)


@settings_class
class ServerCallSettings:
    """Fields of the calls, with the names and meanings of `vllm bench serve` and `vllm-rs bench
    serve`.
    """

    profile: bool = target_option(
        False,
        "start the server's profiler after the warm-up and stop it after the run: POST "
        "/start_profile, /stop_profile",
    )
    profile_body: dict[str, Any] | None = target_option(
        None,
        "JSON object for /start_profile; with num_steps (SGLang) or max_iterations (vLLM) the "
        "profiler stops by itself",
        metavar="JSON",
        needs="profile",
    )
    profile_url: tuple[str, ...] = target_option(
        (),
        "servers whose profiler is started, such as the prefill workers behind a router (those of "
        "--base-url)",
        metavar="URL",
        needs="profile",
        parse=_check_urls,
    )
    profile_batch_threshold: int | None = target_option(
        None,
        "start the profiler when the server runs this many requests at once",
        metavar="N",
        range=FROM_1,
        needs="profile",
    )
    profile_duration: float = target_option(
        PROFILE_S,
        "with --profile-batch-threshold: seconds until the profiler is stopped",
        unit=SECONDS,
        range=POSITIVE,
        needs="profile_batch_threshold",
    )
    call_before: tuple[str, ...] = target_option(
        (),
        "paths of the server that receive a POST before the clock starts, such as /reset_mm_cache "
        "of vLLM",
        metavar="PATH",
        form=Form("/[!-~]*", "{!r} is not a path", "write for example /reset_mm_cache"),
    )


def check_server(settings: TargetSettings) -> None:
    """Check that a run has a server: its address, what only a server has, or an engine to start.

    Raises:
        BadInput: It has none.
    """
    if all(getattr(settings, name) is None for name in _SERVER_SETTINGS):
        raise BadInput(
            setting.base_url,
            "no server is named",
            f"give its URL; {setting.engine} sim measures loadgen's own simulator, as "
            "`loadgen demo` does",
        )
