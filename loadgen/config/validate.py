"""Validation of the settings of a run: ranges, choices, and combinations.

Nothing is sent or written before it.
"""

import math
import re
from collections.abc import Iterable
from typing import Any

from loadgen.config import load_check, request_check, route_check, server_url, slo
from loadgen.config.data import NO_TOKENIZER, RERANK, DataSettings, parse_ratios
from loadgen.config.load import ALL_PROMPTS, CACHE, SALTED, SEED_FIELDS
from loadgen.config.load_check import MAX_DURATION_S, MAX_REQUESTS
from loadgen.config.load_profile import MAX_IN_FLIGHT, MAX_RATE
from loadgen.config.option import ABOVE_0, FINITE, FROM_1, TOKENS, Range, choices, flag, members
from loadgen.config.output import (
    METRICS,
    NAMING,
    QUEUE_METRICS,
    SGLANG_ARGUMENTS,
    SGLANG_PERCENTILES,
    OutputSettings,
    parse_listen,
    parse_percentiles,
)
from loadgen.config.run_fields import RunFields
from loadgen.config.target import PROFILE_S
from loadgen.errors import BadInput
from loadgen.util import source_address
from loadgen.util.redaction import HEADER_NAME, header_name, redact_user

# Headers that every request has, or that a connection sets.
OWN_HEADERS = frozenset(
    (
        "host",
        "connection",
        "content-length",
        "content-type",
        "transfer-encoding",
        "accept",
        "accept-encoding",
    )
)
SESSION_TOKEN = "--session-token"
MAX_WARMUPS = 1_000_000
MAX_PROBE_RATE = 1e3  # each waits for the one before it
MAX_ZIPF = 100.0  # the first prefix then has all requests
MAX_REPLICAS = 128  # sixteen accelerators, each split into seven, are the most in one machine
MAX_WORKERS = 256
_TOKENS = (
    "sharegpt_output_len",
    "sonnet_input_len",
    "sonnet_output_len",
    "hf_output_len",
    "trace_block_size",
)
_LENGTHS = (  # with forms for drawn lengths, which each data set checks
    "random_input_len",
    "random_output_len",
    "prefix_repetition_suffix_len",
    "prefix_repetition_output_len",
)
_RUN_RANGES: tuple[tuple[tuple[str, ...], Range], ...] = (
    (
        (
            "request_rate",
            "burstiness",
            "users",
            "max_concurrency",
            "duration",
            "engine_timeout",
            "ray_nodes",
            "profile_batch_threshold",
            "profile_duration",
            "gpus",
            "gpu_hour_price",
            "cache_block_size",
        ),
        Range("a number above 0", ABOVE_0),
    ),
    (
        ("num_prompts",),
        Range("a number above 0, or -1 for all prompts of a file", 1, besides=ALL_PROMPTS),
    ),
    (("replicas",), Range(f"1 to {MAX_REPLICAS}", 1, MAX_REPLICAS)),
    (
        (
            *("ramp_up_start_rps", "ramp_up_end_rps", "ready_check_timeout_sec", "num_warmups"),
            *("connect_timeout", "first_token_timeout", "stall_timeout", "timeout", *SEED_FIELDS),
        ),
        Range("0 or more", 0, FINITE),
    ),
    (("warmup",), Range("a time above 0", ABOVE_0, MAX_DURATION_S)),
    (("num_warmups",), Range(f"at most {MAX_WARMUPS:,}", 0, MAX_WARMUPS)),
    (SEED_FIELDS, Range("less than 2**63", 0, (1 << 63) - 1)),
    (("max_error_rate",), Range("a share between 0 and 1", 0, 1)),
    (("probe_request_rate",), Range(f"0 to {MAX_PROBE_RATE:g} requests/s", 0, MAX_PROBE_RATE)),
    (("port",), Range("a port between 1 and 65535", 1, 65535)),
    (
        ("request_rate",),
        Range(f"at most {MAX_RATE:,.0f} requests/s, or inf", 0, MAX_RATE, besides=math.inf),
    ),
    (("users",), Range(f"at most {MAX_IN_FLIGHT:,} users", 0, MAX_IN_FLIGHT)),
    (
        ("max_concurrency",),
        Range(f"at most {MAX_IN_FLIGHT:,} requests in flight", 0, MAX_IN_FLIGHT),
    ),
    (("duration",), Range(f"at most {MAX_DURATION_S:,.0f} s", 0, MAX_DURATION_S)),
    (("num_prompts",), Range(f"at most {MAX_REQUESTS:,}", ALL_PROMPTS, MAX_REQUESTS)),
)
_DATA_RANGES: tuple[tuple[tuple[str, ...], Range], ...] = (
    (_TOKENS, TOKENS),
    (("trace_time_unit",), Range("a number of seconds from 1e-9 to 1,000,000", 1e-9, 1e6)),
    (("prefix_zipf",), Range(f"a number above 0, up to {MAX_ZIPF:g}", ABOVE_0, MAX_ZIPF)),
    (("max_think_time",), Range("0 or more seconds, up to 1,000,000,000", 0, 1e9)),
    (("time_scale",), Range("a number from 0.001 to 1,000,000", 1e-3, 1e6)),
    (
        ("random_prefix_len", "prefix_repetition_prefix_len", "sonnet_prefix_len"),
        Range("0 tokens or more", 0),
    ),
    (("prefix_repetition_num_prefixes", "random_batch_size", "distinct_prompts"), FROM_1),
    (
        ("custom_output_len",),
        Range("1 token or more, or -1 if every row has output_tokens", 1, besides=-1),
    ),
)
_OUTPUT_RANGES: tuple[tuple[tuple[str, ...], Range], ...] = (
    (("steady_state_threshold",), Range("a share from 0 to 1", 0, 1)),
    (("steady_state_min_window",), Range("0 s or more", 0)),
)


def check(settings: RunFields) -> None:
    """Check every field of a run, and their combinations.

    Raises:
        BadInput: The first value that cannot be used.
    """
    _check_choices(settings)
    _check_ranges(settings, _RUN_RANGES)
    if settings.warm_connections != "auto" and not settings.warm_connections.isdecimal():
        problem = f"invalid number {settings.warm_connections!r}"
        raise BadInput("--warm-connections", problem, "write auto, or a number from 0")
    check_data(settings)
    load_check.check(settings)
    _check_scale(settings)
    _check_engine(settings)
    _check_target(settings)
    route_check.check(settings)
    request_check.check(settings)
    check_server_calls(settings)
    if settings.cache == SALTED and settings.tokenizer == NO_TOKENIZER:
        problem = f"salted needs a tokenizer, and --tokenizer is {NO_TOKENIZER}"
        raise BadInput(CACHE, problem, "name the model's tokenizer, or give --cache cold")
    check_output(settings)
    source_address.parse(settings.source_address)
    slo.parse_goodput(settings.goodput)
    if settings.slo is not None:
        slo.parse(settings.slo)
    slo.check_stop_conditions(settings)


def check_data(settings: DataSettings) -> None:
    """Check the values that no data set accepts. Each data set checks the rest itself.

    Raises:
        BadInput: The first value that cannot be used.
    """
    fixed = tuple(name for name in _LENGTHS if not isinstance(getattr(settings, name), str))
    _check_ranges(settings, ((fixed, TOKENS), *_DATA_RANGES))
    parse_ratios(settings.random_range_ratio)
    if settings.no_reranker and settings.dataset_name == RERANK and settings.random_batch_size < 2:
        problem = "has no room for a document beside the query, with --no-reranker"
        raise BadInput("--random-batch-size", problem, "give 2 or more")
    if settings.distinct_prompts is not None and settings.timed_by_data:
        problem = "sessions, and requests of a trace, are not repeated"
        raise BadInput("--distinct-prompts", problem, "leave it out")
    for pair in settings.dataset_arg:
        if "=" not in pair:
            raise BadInput("--dataset-arg", f"{pair!r} has no value", "write NAME=VALUE")
    if len(settings.dataset_options) < len(settings.dataset_arg):
        raise BadInput("--dataset-arg", "has an option twice", "give each once")


def check_output(settings: OutputSettings) -> None:
    """Check what is to be reported and written.

    Raises:
        BadInput: The first value that cannot be used.
    """
    if settings.brief and settings.full:
        raise BadInput("--full", "cannot be combined with --brief", "leave one of the two out")
    for metric in settings.percentile_metrics.split(","):
        if metric not in (*METRICS, *QUEUE_METRICS):
            remedy = f"choose from {','.join((*METRICS, *QUEUE_METRICS))}"
            raise BadInput("--percentile-metrics", f"unknown metric {metric!r}", remedy)
    for part in settings.metric_percentiles.split(","):
        try:
            usable = 0 <= float(part) <= 100
        except ValueError:
            usable = False
        if not usable:
            remedy = "write numbers from 0 to 100, for example 50,99"
            raise BadInput("--metric-percentiles", f"invalid percentile {part!r}", remedy)
    _check_sglang_result(settings)
    check_page("--html", settings.html)
    for pair in settings.metadata:
        key, equals, _ = pair.partition("=")
        if not equals:
            raise BadInput("--metadata", f"{pair!r} has no value", "write KEY=VALUE")
        if key.strip() in NAMING:
            problem = f"{key.strip()!r} is a key of the result itself, which identifies the run"
            raise BadInput("--metadata", problem, "choose another key")
    _check_ranges(settings, _OUTPUT_RANGES)
    if settings.prometheus is not None:
        parse_listen(settings.prometheus)


def check_page(name: str, path: str | None) -> None:
    """Check that the name of an HTML page ends in .html.

    Args:
        name: The flag.
        path: Its value, None if it is not given.

    Raises:
        BadInput: The name has another ending.
    """
    if path is not None and not path.endswith(".html"):
        raise BadInput(name, f"{path!r} does not end in .html", "write FILE.html")


def check_share(cap: int | None, workers: int, machines: int = 1) -> None:
    """Check that each process gets a part of the cap on requests in flight.

    Args:
        cap: --max-concurrency, if it is given.
        workers: Processes on each machine.
        machines: Machines that share the run.

    Raises:
        BadInput: There are more processes than requests.
    """
    count = workers * machines
    if cap is not None and count > cap:
        processes = (
            f"{workers} processes"
            if machines == 1
            else f"{machines} machines of {workers} processes"
        )
        problem = f"{processes} cannot share {cap} requests in flight"
        raise BadInput("--workers", problem, f"use at most {cap} in all")


def check_server_calls(settings: RunFields) -> None:
    """Check the paths and bodies of calls, and that flags of the profiler belong to one.

    Raises:
        BadInput: The first value that cannot be used.
    """
    for path in settings.call_before:
        if not path.startswith("/") or not path.isascii() or not path.isprintable() or " " in path:
            raise BadInput(
                "--call-before", f"{path!r} is not a path", "write for example /reset_mm_cache"
            )
    if not isinstance(settings.profile_body, dict | None):
        raise BadInput(
            "--profile-body", "not a JSON object", "write for example '{\"num_steps\": 5}'"
        )
    for url in settings.profile_url:
        if not re.fullmatch(r"https?://[!-~]+", url):
            raise BadInput(
                "--profile-url", f"{redact_user(url)!r} is not a URL", "write http://HOST:PORT"
            )
    if not settings.profile:
        for name in ("profile_body", "profile_url", "profile_batch_threshold"):
            if getattr(settings, name) != getattr(RunFields, name):
                problem = "missing, although other flags say what to profile"
                raise BadInput("--profile", problem, "add it, or leave them out")
    if settings.profile_batch_threshold is None:
        if settings.profile_duration != PROFILE_S:
            remedy = (
                "add --profile-batch-threshold; without it the profiler runs until the run "
                "has ended"
            )
            raise BadInput("--profile-duration", "given without --profile-batch-threshold", remedy)
    elif settings.server_metrics == ("off",):
        remedy = "leave out --server-metrics off, or the threshold"
        raise BadInput(
            "--profile-batch-threshold", "needs the server's metrics, which are off", remedy
        )


def _check_ranges(settings: Any, ranges: Iterable[tuple[tuple[str, ...], Range]]) -> None:
    for names, numbers in ranges:
        for name in names:
            numbers.check(flag(name), getattr(settings, name))


def _check_choices(settings: RunFields) -> None:
    fields: type = type(settings)
    for name, kinds in members(fields).items():
        value = getattr(settings, name)
        allowed = choices(kinds)
        if value == "":
            raise BadInput(flag(name), "is empty", "give a value, or leave it out")
        if allowed and value is not None and value not in allowed:
            raise BadInput(
                flag(name), f"unknown value {value!r}", f"choose from {', '.join(allowed)}"
            )


def _check_scale(settings: RunFields) -> None:
    if settings.workers != "auto":
        Range(f"auto, or 1 to {MAX_WORKERS}", 1, MAX_WORKERS).check("--workers", settings.workers)
        check_share(settings.max_concurrency, int(settings.workers), settings.ray_nodes or 1)
    if settings.capture is not None and (
        settings.ray is not None or settings.workers not in (1, "auto")
    ):
        other = "--workers" if settings.ray is None else "--ray"
        problem = f"given together with {other}: only a single process can capture responses"
        raise BadInput("--capture", problem, f"leave out --capture or {other}")
    if settings.ray is None:
        if settings.ray_nodes is not None:
            raise BadInput("--ray-nodes", "given without a cluster", "give --ray")
        return
    if settings.ray.startswith("ray://"):
        remedy = "run loadgen on a machine of the cluster, and give HOST:PORT of its head, or auto"
        raise BadInput("--ray", "ray:// addresses a proxy of Ray, which loadgen cannot use", remedy)
    if not settings.urls and settings.host is None:
        problem = "given without a server that the machines of the cluster can reach"
        raise BadInput("--ray", problem, "start a server that they can reach, and give --base-url")


def _check_engine(settings: RunFields) -> None:
    if settings.engine is None:
        for name in ("engine_arg", "replicas", "devices"):
            if getattr(settings, name) != getattr(RunFields, name):
                raise BadInput(flag(name), "given without an engine to start", "give --engine")
        return
    for name in ("base_url", "port", "proxy", "unix_socket"):
        if getattr(settings, name) is not None:
            problem = "given together with --engine, which starts its own server"
            raise BadInput(flag(name), problem, f"leave out {flag(name)} or --engine")
    if settings.model is None and settings.engine != "sim":
        raise BadInput(
            "--model", "missing, although --engine is given", "give a folder, file or hub name"
        )
    if settings.devices is None:
        return
    devices = settings.devices.split(",")
    if not all(map(str.strip, devices)):
        raise BadInput(
            "--devices",
            f"{settings.devices!r} contains an empty id",
            "write ID,ID, for example 0,1",
        )
    if len(set(devices)) < len(devices):
        raise BadInput("--devices", f"{settings.devices} contains an id twice", "give each id once")
    if len(devices) % settings.replicas:
        problem = f"{settings.devices} cannot be split equally among {settings.replicas} servers"
        raise BadInput("--devices", problem, f"give a multiple of {settings.replicas}")


def _check_target(settings: RunFields) -> None:
    if settings.base_url == ():
        raise BadInput("--base-url", "is empty", "give a URL, or leave it out")
    for url in settings.urls:
        if (path := server_url.endpoint_of(url)) is not None:
            problem = f"{redact_user(url)} names the endpoint {path}"
            other = f"--endpoint {settings.endpoint}" if settings.endpoint else "another --base-url"
            raise BadInput("--base-url", problem, f"leave it out: {other} does not")
    if settings.balance is not None and len(settings.urls) < 2 and settings.replicas < 2:
        remedy = "leave it out, or give --base-url for each server, or --replicas"
        raise BadInput("--balance", "given for a single target", remedy)
    _check_header_name(
        "--session-header", settings.session_header, "give a name such as X-Session-ID, or none"
    )
    _check_session_token(settings)
    if settings.api_key is not None and settings.api_key_command is not None:
        raise BadInput("--api-key-command", "given together with --api-key", "leave one out")
    if settings.api_key_header is not None:
        _check_header_name(
            "--api-key-header", settings.api_key_header, "give a name such as api-key"
        )
    if not HEADER_NAME.fullmatch(settings.request_id_prefix):
        problem = (
            f"{settings.request_id_prefix!r} contains characters that are not allowed in a header"
        )
        raise BadInput("--request-id-prefix", problem, "use letters, digits, - and _")


def _check_sglang_result(settings: OutputSettings) -> None:
    arguments = settings.sglang_result
    if arguments is None:
        return
    if not isinstance(arguments, dict):
        raise BadInput(
            "--sglang-result", "not a JSON object", 'write for example \'{"tag": "nightly"}\''
        )
    for name in arguments.keys() - {*SGLANG_ARGUMENTS}:
        raise BadInput(
            "--sglang-result",
            f"unknown argument {name!r}",
            f"choose from {', '.join(SGLANG_ARGUMENTS)}",
        )
    if not {*SGLANG_PERCENTILES} <= {*parse_percentiles(settings.metric_percentiles)}:
        problem = (
            "needs the percentiles 90, 95 and 99, and --metric-percentiles is "
            f"{settings.metric_percentiles}"
        )
        raise BadInput("--sglang-result", problem, "give --metric-percentiles 90,95,99")


def _check_session_token(settings: RunFields) -> None:
    if settings.session_token is None:
        return
    _check_header_name(
        SESSION_TOKEN, settings.session_token, "give a name such as x-session-token, or set-cookie"
    )
    sent = (
        "cookie"
        if settings.session_token.lower() == "set-cookie"
        else settings.session_token.lower()
    )
    if sent in (header_name(header).lower() for header in settings.header):
        raise BadInput(SESSION_TOKEN, f"--header sends {sent}, too", "leave one of the two out")
    if sent == settings.session_header.lower():
        raise BadInput(
            SESSION_TOKEN, f"--session-header sends {sent}, too", "give --session-header none"
        )


def _check_header_name(name_flag: str, name: str, remedy: str) -> None:
    if not HEADER_NAME.fullmatch(name):
        raise BadInput(
            name_flag,
            f"{name!r} contains characters that are not allowed in a header's name",
            remedy,
        )
    if name.lower() in OWN_HEADERS:
        raise BadInput(name_flag, f"{name} is a header of every request", remedy)
