"""The settings of one run: a frozen object of which every command-line flag is a field."""

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin, get_type_hints

from loadgen import scale_settings, slo, sources
from loadgen.data_settings import FULL_LENGTH, TRACE, DataSettings
from loadgen.errors import BadInput
from loadgen.options import CONNECTIONS, ENGINE, JUDGEMENT, LOAD, SAMPLING, TARGET, flag, option, read_times, require
from loadgen.output_settings import OutputSettings
from loadgen.redaction import HEADER_NAME, MARK, header_name, without_secrets, without_user
from loadgen.scale_settings import ScaleSettings

Backend = Literal["openai-chat", "openai", "vllm", "lmdeploy", "scalellm", "sglang", "llama.cpp"]
Drawn = Literal["arrivals", "prompts", "order"]
SEEDS: tuple[Drawn, ...] = get_args(Drawn)
Balance = Literal["round-robin", "least-outstanding"]
CHAT_ENDPOINT, COMPLETIONS_ENDPOINT = "/v1/chat/completions", "/v1/completions"
BALANCE: Balance = "round-robin"  # unless the settings say otherwise
MAX_RATE = 1e6  # requests/s: far above what one host can send, far below what overflows int64 ns
MAX_REQUESTS = 50_000_000
MAX_DURATION_S = 30 * 86400.0
MOST_REPLICAS = 128  # sixteen accelerators, each cut into seven, are the most that a machine has
SINGLE_ANSWER = {"n": 1, "best_of": 1, "use_beam_search": False}  # fields of a request, as one answer needs them
SWEPT = ("request_rate", "max_concurrency")  # of which a command takes several, for a run each
KEY_VARIABLE = "OPENAI_API_KEY"  # where the API key comes from when no setting gives one; never handed to a child


@dataclass(frozen=True, kw_only=True)
class RunSettings(DataSettings, OutputSettings, ScaleSettings):
    """What one run asks, of whom, how fast, and what is kept; names and meanings are `vllm bench serve`'s.

    Times are seconds, or texts such as "500ms", "30s", "2m", "1h"; rates are requests per second, lengths tokens. Call
    `checked()` before use.

    `base_url` may be one URL, or several: then it is a tuple, and the requests are shared among these targets.
    """

    base_url: str | tuple[str, ...] | None = option(
        None,
        TARGET,
        "server, with scheme and port (instead of --host and --port); given again, one more to share the load",
        metavar="URL",
    )
    balance: Balance | None = option(None, TARGET, "how several servers share the requests (round-robin)")
    host: str | None = option(None, TARGET, "server host; with --engine, where it listens (127.0.0.1)")
    port: int | None = option(None, TARGET, "server port (8000)")
    endpoint: str | None = option(None, TARGET, "path of the API (by backend)", metavar="PATH")
    backend: Backend | None = option(
        None,
        TARGET,
        "openai-chat, or openai for completions, of which all others are names (openai; the simulator: openai-chat)",
    )
    model: str | None = option(None, TARGET, "model name (the server's first)")
    served_model_name: str | None = option(
        None, TARGET, "name to send in requests, where it differs from --model", metavar="NAME"
    )
    tokenizer: str | None = option(
        None,
        TARGET,
        "tokenizer.json, its folder, or a hub name (what the server names, else --model); none: only the server counts",
        metavar="PATH|NAME|none",
    )
    header: tuple[str, ...] = option(
        (), TARGET, "extra headers, each Name=value or Name=@FILE", metavar="NAME=VALUE|@FILE"
    )
    api_key: str | None = option(
        None, TARGET, "bearer token, or with @ the file that holds it (OPENAI_API_KEY)", metavar="@FILE|KEY"
    )
    request_id_prefix: str = option(
        "loadgen-", TARGET, "start of every X-Request-Id; what is unique follows", metavar="TEXT"
    )
    insecure: bool = option(False, TARGET, "do not verify TLS certificates")
    server_metrics: tuple[str, ...] = option(
        (),
        TARGET,
        "where the server tells of itself: URLs, auto (/metrics, if it does; the default) or off",
        metavar="URL|auto|off",
    )
    extra_body: dict[str, Any] | None = option(
        None, TARGET, "JSON object merged into every request body", metavar="JSON"
    )
    continuous_usage: bool = option(
        False, TARGET, "ask for usage with every event, to know how many tokens each bears; dropped where refused"
    )

    engine: str | None = option(
        None, ENGINE, "start this one to serve --model, and put it away in the end (`loadgen engines` lists them)"
    )
    engine_arg: tuple[str, ...] = option(
        (), ENGINE, "knobs as NAME=VALUE, and the engine's own flags, as --engine-arg='--dtype half'", metavar="ARG"
    )
    replicas: int = option(1, ENGINE, "servers to start, which share the requests and the --devices", metavar="N")
    devices: str | None = option(None, ENGINE, "accelerators that it may use (those it finds)", metavar="ID,ID")
    engine_timeout: float = option(600.0, ENGINE, "seconds until it answers", metavar="SECONDS")

    temperature: float | None = option(None, SAMPLING, "sampling temperature (the server's default)")
    top_p: float | None = option(None, SAMPLING, "nucleus sampling")
    top_k: int | None = option(None, SAMPLING, "top-k sampling")
    min_p: float | None = option(None, SAMPLING, "min-p sampling")
    frequency_penalty: float | None = option(None, SAMPLING, "frequency penalty")
    presence_penalty: float | None = option(None, SAMPLING, "presence penalty")
    repetition_penalty: float | None = option(None, SAMPLING, "repetition penalty")
    ignore_eos: bool | None = option(
        None, SAMPLING, "ask the server to go on past the end of the answer (where prompts are random)"
    )

    request_rate: float = option(
        math.inf,
        LOAD,
        "requests per second, or inf for all at once; several, as 1,2,4: a run each",
        alias="--rate",
        metavar="RPS",
    )
    burstiness: float = option(
        1.0, LOAD, "gamma shape of the gaps: 1 Poisson, < 1 burstier, inf constant", metavar="SHAPE"
    )
    max_concurrency: int | None = option(
        None,
        LOAD,
        "most requests in flight; the wait for a slot is measured; several, as 1,2,4: a run each",
        metavar="N",
    )
    num_prompts: int | None = option(None, LOAD, "requests to send (1000, or what --duration holds)", metavar="N")
    duration: float | None = option(None, LOAD, "seconds during which requests become due", metavar="SECONDS")
    ramp_up_strategy: Literal["linear", "exponential"] | None = option(None, LOAD, "let the rate grow over the run")
    ramp_up_start_rps: float | None = option(None, LOAD, "rate at the start of the ramp", metavar="RPS")
    ramp_up_end_rps: float | None = option(None, LOAD, "rate at the end of the ramp", metavar="RPS")
    num_warmups: int = option(0, LOAD, "requests sent and forgotten before the clock starts", metavar="N")
    warmup_prompt: Literal["other", "first"] = option(
        "other",
        LOAD,
        "what warm-ups and the test request ask: other prompts than the run's, or its first one each time, as "
        "`vllm bench serve` does",
    )
    ready_check_timeout_sec: float = option(
        0.0, LOAD, "wait so long for the server, and for one test request to succeed (0: neither)", metavar="SECONDS"
    )
    seed: int = option(0, LOAD, "seed of everything drawn")
    seed_arrivals: int | None = option(None, LOAD, "seed of the due times (--seed)", metavar="SEED")
    seed_prompts: int | None = option(None, LOAD, "seed of the prompts' contents and lengths (--seed)", metavar="SEED")
    seed_order: int | None = option(None, LOAD, "seed of the prompts' order (--seed)", metavar="SEED")

    warm_connections: str = option(
        "auto", CONNECTIONS, "connections opened before the clock starts: auto, N or 0", metavar="auto|N"
    )
    source_address: str | None = option(
        None, CONNECTIONS, "addresses of this machine that connections come from, in turn", metavar="A,B"
    )
    connect_timeout: float = option(60.0, CONNECTIONS, "seconds to open a connection", metavar="SECONDS")
    first_token_timeout: float = option(
        0.0, CONNECTIONS, "seconds from sent to the first token (0: no limit)", metavar="SECONDS"
    )
    stall_timeout: float = option(
        600.0, CONNECTIONS, "seconds of silence once an answer has begun (600; 0: no limit)", metavar="SECONDS"
    )
    timeout: float = option(21600.0, CONNECTIONS, "seconds for a whole request (0: no limit)", metavar="SECONDS")

    latency_from: Literal["due", "sent"] = option("due", JUDGEMENT, "where loadgen's own latencies start")
    goodput: tuple[str, ...] = option(
        (), JUDGEMENT, "limits in ms for a good request: ttft:200 tpot:50 e2el:5000", metavar="METRIC:MS"
    )
    slo: str | None = option(None, JUDGEMENT, 'limits: "ttft_p99<500ms,error_rate<1%"; repeatable', metavar="LIMITS")
    max_error_rate: float = option(
        0.01,
        JUDGEMENT,
        "exit 5 where a larger share of the requests failed, by the server or by the client",
        metavar="SHARE",
    )
    keep_going: bool = option(False, JUDGEMENT, "do not end the run where the server refuses every connection for 5 s")
    strict: bool = option(False, JUDGEMENT, "exit 4 when the run is SUSPECT")

    def __post_init__(self) -> None:
        if isinstance(self.base_url, list | tuple):
            # One alone is the same run however it was given: as a flag, in a file, or in a program.
            urls = tuple(self.base_url)
            object.__setattr__(self, "base_url", urls[0] if len(urls) == 1 else urls)
        read_times(self)

    def __repr__(self) -> str:
        default = public(RunSettings())
        shown = (f"{name}={value!r}" for name, value in public(self).items() if value != default[name])
        return f"RunSettings({', '.join(shown)})"

    def replace(self, **changes: Any) -> "RunSettings":
        """Return a copy with some fields changed."""
        return dataclasses.replace(self, **changes)

    @property
    def urls(self) -> tuple[str, ...]:
        """Every --base-url as it was given; none where --host and --port name the server, or nothing does."""
        if self.base_url is None:
            return ()
        return (self.base_url,) if isinstance(self.base_url, str) else self.base_url

    def apart(self) -> "tuple[RunSettings, ...]":
        """The settings of a run against each of the targets alone."""
        if len(self.urls) < 2:
            return (self,)
        return tuple(self.replace(base_url=url, balance=None) for url in self.urls)

    def implied(self) -> "RunSettings":
        """Return a copy that asks for answers of full length where nothing else was said, and the data set implies it.

        Random prompts do: what a model says to them is of no interest, how much of it is (as `vllm bench serve` has
        it); and rules of tools that do.
        """
        full = self.dataset_rule in FULL_LENGTH if self.dataset_rule else self.dataset_name == "random"
        return self.replace(ignore_eos=full) if self.ignore_eos is None else self

    def checked(self) -> "RunSettings":
        """Return these settings, once every value has been found usable.

        Raises:
            BadInput: The first value that cannot be used; nothing has been sent or written.
        """
        for name, kind in get_type_hints(RunSettings).items():
            if getattr(self, name) == "":
                raise BadInput(flag(name), "is empty", "give a value, or leave it out")
            choices = _choices(kind)
            if choices and getattr(self, name) not in choices:
                known = ", ".join(str(choice) for choice in choices if choice is not None)
                raise BadInput(flag(name), f"{getattr(self, name)!r} is no choice", f"choose from {known}")
        for name in (
            "request_rate",
            "burstiness",
            "max_concurrency",
            "num_prompts",
            "duration",
            "engine_timeout",
        ):
            require(name, getattr(self, name), lambda v: v > 0, "a number above 0")
        require("replicas", self.replicas, lambda v: 0 < v <= MOST_REPLICAS, f"1 to {MOST_REPLICAS}")
        for name in (
            "ramp_up_start_rps",
            "ramp_up_end_rps",
            "ready_check_timeout_sec",
            "num_warmups",
            "connect_timeout",
        ):
            require(name, getattr(self, name), lambda v: 0 <= v < math.inf, "0 or more")
        for name in (
            "first_token_timeout",
            "stall_timeout",
            "timeout",
            "seed",
            "seed_arrivals",
            "seed_prompts",
            "seed_order",
        ):
            require(name, getattr(self, name), lambda v: 0 <= v < math.inf, "0 or more")
        for name in ("seed", "seed_arrivals", "seed_prompts", "seed_order"):
            require(name, getattr(self, name), lambda v: v < 1 << 63, "less than 2**63")
        require("max_error_rate", self.max_error_rate, lambda v: 0 <= v <= 1, "a share between 0 and 1")
        require("port", self.port, lambda v: 0 < v < 65536, "a port between 1 and 65535")
        if not math.isinf(self.request_rate):
            require(
                "request_rate", self.request_rate, lambda v: v <= MAX_RATE, f"at most {MAX_RATE:g} requests/s, or inf"
            )
        require("duration", self.duration, lambda v: v <= MAX_DURATION_S, f"at most {MAX_DURATION_S:g} s")
        require("num_prompts", self.num_prompts, lambda v: v <= MAX_REQUESTS, f"at most {MAX_REQUESTS:,}")
        if self.warm_connections != "auto" and not self.warm_connections.isdecimal():
            raise BadInput(
                "--warm-connections", f"{self.warm_connections!r} is no count", "write auto, or a number from 0"
            )
        self.check_data()
        self._check_load()
        scale_settings.check(self)
        self._check_engine()
        self._check_target()
        self.check_output()
        sources.parse(self.source_address)
        slo.parse_goodput(self.goodput)
        if self.slo is not None:
            slo.parse(self.slo)
        return self

    def _check_load(self) -> None:
        if self.dataset_name == TRACE:
            for name in ("request_rate", "burstiness", "ramp_up_strategy"):
                if getattr(self, name) != getattr(RunSettings, name):
                    problem = "given beside a trace, which says when each request is due"
                    raise BadInput(flag(name), problem, "leave it out; --time-scale makes it faster or slower")
        ramp = (self.ramp_up_start_rps, self.ramp_up_end_rps)
        if self.ramp_up_strategy is None:
            if ramp != (None, None):
                raise BadInput("--ramp-up-strategy", "missing beside ramp-up rates", "write linear or exponential")
        else:
            start, end = ramp
            if start is None or end is None:
                raise BadInput(
                    "--ramp-up-strategy", "without its rates", "give --ramp-up-start-rps and --ramp-up-end-rps"
                )
            if math.isfinite(self.request_rate):
                raise BadInput("--request-rate", "given beside a ramp", "leave it out: the ramp's rates say it")
            if not start < end <= MAX_RATE or (self.ramp_up_strategy == "exponential" and start == 0):
                problem = f"{start:g} to {end:g} requests/s is no ramp"
                raise BadInput("--ramp-up-end-rps", problem, "let it rise; an exponential one starts above 0")
        open_ended = math.isinf(self.request_rate) and self.ramp_up_strategy is None and self.dataset_name != TRACE
        if self.duration is not None and open_ended and self.max_concurrency is None:
            problem = "a duration alone does not bound requests that are all sent at once"
            raise BadInput(
                "--duration", problem, "add --request-rate or --max-concurrency, or give --num-prompts instead"
            )
        if self.duration is not None and self.num_prompts is None and not open_ended and self.dataset_name != TRACE:
            rate = self.request_rate if self.ramp_up_end_rps is None else self.ramp_up_end_rps
            if rate * self.duration > MAX_REQUESTS:
                raise BadInput(
                    "--duration", f"{rate * self.duration:.3g} requests", f"keep a run under {MAX_REQUESTS:,}"
                )

    def _check_engine(self) -> None:
        if self.engine is None:
            for name in ("engine_arg", "replicas", "devices"):
                if getattr(self, name) != getattr(RunSettings, name):
                    raise BadInput(flag(name), "given without an engine to start", "name one with --engine")
            return
        for name in ("base_url", "port"):
            if getattr(self, name) is not None:
                problem = "given beside --engine, which starts a server of its own"
                raise BadInput(flag(name), problem, "leave one of the two out")
        if self.model is None and self.engine != "sim":
            raise BadInput("--model", "missing beside --engine", "name the folder, file or hub name it is to serve")
        if self.devices is not None and not all(map(str.strip, self.devices.split(","))):
            raise BadInput("--devices", f"{self.devices!r} names an empty one", "write ID,ID, as 0,1")
        if self.devices is not None and len(set(self.devices.split(","))) < len(self.devices.split(",")):
            raise BadInput("--devices", f"{self.devices} names one twice", "name each once")
        if self.devices is not None and len(self.devices.split(",")) % self.replicas:
            problem = f"{self.devices} cannot be shared equally by {self.replicas} servers"
            raise BadInput("--devices", problem, f"give a multiple of {self.replicas}")

    def _check_target(self) -> None:
        if self.base_url == ():
            raise BadInput("--base-url", "names no server", "give a URL, or leave it out")
        if self.balance is not None and len(self.urls) < 2 and self.replicas < 2:
            raise BadInput(
                "--balance", "there is one target", "leave it out, or give --base-url for each server, or --replicas"
            )
        chat_path = self.endpoint is not None and self.endpoint.endswith("chat/completions")
        if self.endpoint is not None and self.backend is not None and chat_path != (self.backend == "openai-chat"):
            problem = f"{self.endpoint} is not an endpoint of the backend {self.backend}"
            raise BadInput(
                "--endpoint", problem, "leave it out, or use --backend openai-chat with .../chat/completions"
            )
        if not HEADER_NAME.fullmatch(self.request_id_prefix):
            problem = f"{self.request_id_prefix!r} cannot stand in a header"
            raise BadInput("--request-id-prefix", problem, "use letters, digits, - and _")
        if not isinstance(self.extra_body, dict | None):
            raise BadInput("--extra-body", "not a JSON object", "write e.g. '{\"min_tokens\": 10}'")
        if self.extra_body and not self.extra_body.get("stream", True):
            raise BadInput("--extra-body", "stream: false", "leave it out: latencies of tokens need a stream")
        for field in {"messages", "prompt"} & set(self.extra_body or {}):
            raise BadInput("--extra-body", f"{field} would replace every prompt", "give prompts with --dataset-name")
        for field, single in SINGLE_ANSWER.items():
            if (value := (self.extra_body or {}).get(field)) is not None and value != single:
                problem = f"{field}: {value!r} asks for several answers to a prompt"
                raise BadInput("--extra-body", problem, "leave it out: tokens of several answers come mixed")


def public(settings: RunSettings) -> dict[str, Any]:
    """The settings as JSON, without secrets: the API key, the values of headers, and a user named in the URL."""
    shown: dict[str, Any] = {}
    for name, value in dataclasses.asdict(settings).items():
        if isinstance(value, float) and not math.isfinite(value):
            value = str(value)
        shown[name] = list(value) if isinstance(value, tuple) else value
    shown["api_key"] = MARK if settings.api_key else None
    shown["header"] = [f"{header_name(header)}={MARK}" for header in settings.header]
    shown["engine_arg"] = [without_secrets(word) for word in settings.engine_arg]
    urls = shown_urls(settings)
    shown["base_url"] = list(urls) if len(urls) > 1 else next(iter(urls), None)
    return shown


def shown_urls(settings: RunSettings) -> tuple[str, ...]:
    """Every --base-url, with MARK in place of a user."""
    return tuple(map(without_user, settings.urls))


def is_closed_loop(settings: RunSettings) -> bool:
    """Whether requests are due when a slot is free for them: all at once, under a cap."""
    burst = math.isinf(settings.request_rate) and settings.ramp_up_strategy is None
    return burst and settings.max_concurrency is not None


def seed_of(settings: RunSettings, what: Drawn) -> int:
    """The seed of one of the things that are drawn: its own where given, else the run's."""
    own: int | None = getattr(settings, f"seed_{what}")
    return settings.seed if own is None else own


def _choices(kind: Any) -> tuple[Any, ...]:
    """The values that a field of this type may have, if they can be listed."""
    if get_origin(kind) is Literal:
        return get_args(kind)
    members = [_choices(member) if member is not type(None) else (None,) for member in get_args(kind)]
    return tuple(choice for choices in members for choice in choices) if all(members) else ()
