"""Validation of the settings of a run: ranges, choices, and combinations.

Nothing is sent or written before it.
"""

from loadgen.config import load_check, request_check, route_check, server_url
from loadgen.config.data import NO_TOKENIZER, RERANK, DataSettings, parse_ratios
from loadgen.config.load import CACHE, SALTED
from loadgen.config.option import check_options
from loadgen.config.output import (
    NAMING,
    SGLANG_ARGUMENTS,
    SGLANG_PERCENTILES,
    OutputSettings,
    parse_percentiles,
)
from loadgen.config.run_fields import WORKERS, RunFields
from loadgen.errors import BadInput, setting
from loadgen.util import packages
from loadgen.util.redaction import header_name, redact_user

SESSION_TOKEN = setting.session_token


def check(settings: RunFields) -> None:
    """Check every field of a run, and their combinations.

    Raises:
        BadInput: The first value that cannot be used.
    """
    check_options(settings, load_check.implied(settings))
    check_data(settings)
    load_check.check(settings)
    _check_scale(settings)
    _check_engine(settings)
    _check_target(settings)
    route_check.check(settings)
    request_check.check(settings)
    _check_server_calls(settings)
    if settings.cache == SALTED and settings.tokenizer == NO_TOKENIZER:
        problem = f"salted needs a tokenizer, and {setting.tokenizer} is {NO_TOKENIZER}"
        raise BadInput(CACHE, problem, f"name the model's tokenizer, or give {setting.cache} cold")
    _check_metadata(settings)
    _check_sglang_result(settings)


def check_data(settings: DataSettings) -> None:
    """Check the values that no data set accepts. Each data set checks the rest itself.

    Raises:
        BadInput: The first value that cannot be used.
    """
    parse_ratios(settings.random_range_ratio)  # not with the field: of SGLang, it may be 1
    if settings.no_reranker and settings.dataset_name == RERANK and settings.random_batch_size < 2:
        problem = f"has no room for a document beside the query, with {setting.no_reranker}"
        raise BadInput(setting.random_batch_size, problem, "give 2 or more")
    if settings.distinct_prompts is not None and settings.timed_by_data:
        problem = "sessions, and requests of a trace, are not repeated"
        raise BadInput(setting.distinct_prompts, problem, "leave it out")
    if len(settings.dataset_options) < len(settings.dataset_arg):
        raise BadInput(setting.dataset_arg, "has an option twice", "give each once")


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
        raise BadInput(setting.workers, problem, f"use at most {cap} in all")


def _check_server_calls(settings: RunFields) -> None:
    if settings.profile_batch_threshold is not None and settings.server_metrics == ("off",):
        remedy = f"leave out {setting.server_metrics} off, or the threshold"
        raise BadInput(
            setting.profile_batch_threshold, "needs the server's metrics, which are off", remedy
        )


def _check_scale(settings: RunFields) -> None:
    if settings.workers != "auto":
        WORKERS.check(setting.workers, settings.workers)
        check_share(settings.max_concurrency, int(settings.workers), settings.ray_nodes or 1)
    if settings.capture is not None and settings.workers not in (1, "auto"):
        problem = "given for several processes, and only a single one can capture responses"
        raise BadInput(setting.capture, problem, f"leave it or {setting.workers} out")
    if settings.ray is not None and not settings.urls and settings.host is None:
        problem = "given without a server that the machines of the cluster can reach"
        raise BadInput(
            setting.ray, problem, f"start a server that they can reach, and give {setting.base_url}"
        )


def _check_engine(settings: RunFields) -> None:
    if settings.engine is None:
        return
    if settings.model is None and settings.engine != "sim":
        packages.find("engines", settings.engine)  # refuses an unknown one
        raise BadInput(
            setting.model,
            f"missing, although {setting.engine} is given",
            "give a folder, file or hub name",
        )
    if settings.devices is None:
        return
    devices = settings.devices.split(",")
    if not all(map(str.strip, devices)):
        raise BadInput(
            setting.devices,
            f"{settings.devices!r} contains an empty id",
            "write ID,ID, for example 0,1",
        )
    if len(set(devices)) < len(devices):
        raise BadInput(
            setting.devices, f"{settings.devices} contains an id twice", "give each id once"
        )
    if len(devices) % settings.replicas:
        problem = f"{settings.devices} cannot be split equally among {settings.replicas} servers"
        raise BadInput(setting.devices, problem, f"give a multiple of {settings.replicas}")


def _check_target(settings: RunFields) -> None:
    if settings.base_url == ():
        raise BadInput(setting.base_url, "is empty", "give a URL, or leave it out")
    for url in settings.urls:
        if (path := server_url.endpoint_of(url)) is not None:
            problem = f"{redact_user(url)} names the endpoint {path}"
            other = (
                f"{setting.endpoint} {settings.endpoint}"
                if settings.endpoint
                else f"another {setting.base_url}"
            )
            raise BadInput(setting.base_url, problem, f"leave it out: {other} does not")
    if settings.balance is not None and len(settings.urls) < 2 and settings.replicas < 2:
        remedy = f"leave it out, or give {setting.base_url} for each server, or {setting.replicas}"
        raise BadInput(setting.balance, "given for a single target", remedy)
    _check_session_token(settings)
    if settings.trace and "traceparent" in _header_names(settings):
        problem = f"{setting.header} sends traceparent, the same with every request"
        raise BadInput(setting.trace, problem, "leave one of the two out")


def _check_metadata(settings: OutputSettings) -> None:
    for key in (pair.partition("=")[0].strip() for pair in settings.metadata):
        if key in NAMING:
            problem = f"{key!r} is a key of the result itself, which identifies the run"
            raise BadInput(setting.metadata, problem, "choose another key")


def _check_sglang_result(settings: OutputSettings) -> None:
    arguments = settings.sglang_result
    if arguments is None:
        return
    for name in arguments.keys() - {*SGLANG_ARGUMENTS}:
        raise BadInput(
            setting.sglang_result,
            f"unknown argument {name!r}",
            f"choose from {', '.join(SGLANG_ARGUMENTS)}",
        )
    if not {*SGLANG_PERCENTILES} <= {*parse_percentiles(settings.metric_percentiles)}:
        problem = (
            f"needs the percentiles 90, 95 and 99, and {setting.metric_percentiles} is "
            f"{settings.metric_percentiles}"
        )
        raise BadInput(
            setting.sglang_result, problem, f"give {setting.metric_percentiles} 90,95,99"
        )


def _check_session_token(settings: RunFields) -> None:
    if settings.session_token is None:
        return
    sent = (
        "cookie"
        if settings.session_token.lower() == "set-cookie"
        else settings.session_token.lower()
    )
    if sent in _header_names(settings):
        raise BadInput(
            SESSION_TOKEN, f"{setting.header} sends {sent}, too", "leave one of the two out"
        )
    if sent == settings.session_header.lower():
        raise BadInput(
            SESSION_TOKEN,
            f"{setting.session_header} sends {sent}, too",
            f"give {setting.session_header} none",
        )


def _header_names(settings: RunFields) -> list[str]:
    return [header_name(header).lower() for header in settings.header]
