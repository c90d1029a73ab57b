"""Settings of the output: what is reported of a run, and the files that are written."""

import math
import re
from typing import Any, Literal

from loadgen.config.option import (
    COMPAT,
    EVERYDAY,
    FIRST,
    FROM_1,
    OUTPUT,
    POSITIVE,
    SECONDS,
    SHARE,
    SHARES,
    Form,
    Range,
    option,
    options,
    options_about,
    settings_class,
)
from loadgen.errors import BadInput, setting

METRICS = ("ttft", "tpot", "itl", "e2el")
# Of runs with a cap on requests in flight.
QUEUE_METRICS = ("client_queue_time", "e2el_including_client_queue")
ALL_METRICS = (*METRICS, *QUEUE_METRICS)
LOOPBACK = "127.0.0.1"
# Any of them writes the result.
SAVING = ("save_result", "append_result", "save_detailed", "result_dir", "result_filename")
# Keys of the result that --metadata may not replace: they name files, and identify runs for a
# comparison.
NAMING = ("date", "endpoint_type", "backend", "label", "model_id", "tokenizer_id", "num_prompts")

# The arguments that a result of SGLang repeats, and the percentiles that it has.
SGLANG_ARGUMENTS = (
    *("tag", "backend", "dataset_name", "sharegpt_output_len"),
    *("random_input_len", "random_output_len", "random_range_ratio"),
)
SGLANG_PERCENTILES = (90.0, 95.0, 99.0)
PAGE = Form(r".*\.html", "{!r} does not end in .html", "write FILE.html")  # the name of one
output_option = options_about(OUTPUT)


def _file(text: str, metavar: str = "FILE", **about: Any) -> Any:
    """Declare a field that names a file that the run writes."""
    return option(None, OUTPUT, text, metavar=metavar, file=True, **about)


def parse_percentiles(text: str) -> list[float]:
    """Parse percentiles, such as "50,99,99.9".

    Raises:
        BadInput: One is no number from 0 to 100.
    """
    percentiles = []
    for part in text.split(","):
        try:
            percentiles.append(float(part))
        except ValueError:
            percentiles.append(math.nan)
        if not 0 <= percentiles[-1] <= 100:
            remedy = "write numbers from 0 to 100, for example 50,99"
            raise BadInput(setting.metric_percentiles, f"invalid percentile {part!r}", remedy)
    return percentiles


def parse_listen(text: str) -> tuple[str, int]:
    """Parse the address of --prometheus, "9100", "0.0.0.0:9100" or "[::1]:9100"; the default host
    is loopback.

    Raises:
        BadInput: The text is not an address.
    """
    host, colon, port = text.rpartition(":")
    bare = host.removeprefix("[").removesuffix("]")
    port_fits = re.fullmatch("[0-9]{1,5}", port) and 0 < int(port) < 65536
    if not port_fits or (colon and not bare) or (":" in bare and host == bare):
        raise BadInput(
            setting.prometheus,
            f"invalid address {text!r}",
            "write a port from 1 to 65535, or HOST:PORT",
        )
    return bare or LOOPBACK, int(port)


@settings_class
class OutputSettings:
    """Fields of the output, with the names and meanings of `vllm bench serve`."""

    percentile_metrics: str = output_option(
        "ttft,tpot,itl",
        "latencies to report: ttft,tpot,itl,e2el; with --max-concurrency also client_queue_time "
        "and e2el_including_client_queue",
        metavar="LIST",
        tier=COMPAT,
        form=Form(
            "|".join(ALL_METRICS),
            "unknown metric {!r}",
            f"choose from {','.join(ALL_METRICS)}",
            separator=",",
        ),
    )
    metric_percentiles: str = output_option(
        "99", "percentiles to report", metavar="LIST", tier=COMPAT, parse=parse_percentiles
    )
    save_result: bool = output_option(False, "write the result as JSON", tier=COMPAT)
    save_detailed: bool = output_option(
        False, "write lengths, latencies and text of every request into the result"
    )
    append_result: bool = output_option(
        False, "append the result to the file, one JSON object per line"
    )
    label: str | None = output_option(
        None, "label in the result, and prefix of its file name (--backend)", tier=EVERYDAY
    )
    result_dir: str | None = output_option(None, "write the result into this folder", metavar="DIR")
    result_filename: str | None = output_option(
        None, "write the result to this file", metavar="FILE", file=True, alias="-o", tier=FIRST
    )
    sglang_result: dict[str, Any] | None = output_option(
        None,
        "print SGLang's block, and write its keys into the result; set by --compat sglang, with "
        "the arguments that the result repeats",
        metavar="JSON",
        tier=COMPAT,
    )
    metadata: tuple[str, ...] = output_option(
        (),
        "KEY=VALUE pairs for the result",
        metavar="KEY=VALUE",
        form=Form(".*=.*", "{!r} has no value", "write KEY=VALUE"),
    )
    gpus: int | None = output_option(
        None,
        "number of GPUs of the servers, for rates per GPU (as many as NVML finds)",
        metavar="N",
        range=FROM_1,
    )
    gpu_hour_price: float | None = output_option(
        None,
        "price of one GPU for one hour, to compute the cost of a million tokens",
        metavar="PRICE",
        range=POSITIVE,
    )
    records: str | None = _file(
        "write one JSON line for each request when the run has ended", tier=EVERYDAY
    )
    steady_state_threshold: float = output_option(
        0.95,
        "a closed loop is in its steady state while at least this share of --max-concurrency is "
        "in flight; 0: report none",
        unit=SHARES,
        range=SHARE,
    )
    steady_state_min_window: float | None = output_option(
        None,
        "warn if the steady state is shorter than this (10 s or a tenth of the run)",
        unit=SECONDS,
        range=Range("0 s or more", 0),
    )
    hlog: str | None = _file("write the histograms as an HdrHistogram log")
    html: str | None = _file("write the report as an HTML page", "FILE.html", tier=FIRST, form=PAGE)
    markdown: str | None = _file("write a summary as Markdown that GitHub renders", tier=EVERYDAY)
    junit: str | None = _file(
        "write the gate as JUnit XML, one test case per limit of --slo", tier=EVERYDAY
    )
    capture: str | None = _file(
        "write the raw responses with their times, for a replay",
    )
    prometheus: str | None = output_option(
        None,
        "serve the progress of the run as Prometheus metrics at http://127.0.0.1:PORT/metrics",
        metavar="PORT|HOST:PORT",
        instead="export the progress that on_progress receives",
        tier=EVERYDAY,
        parse=parse_listen,
    )
    json: bool = output_option(
        False,
        "print the result as one JSON object on stdout, everything else on stderr",
        instead="read result.data, or write it with result.save(path)",
        tier=EVERYDAY,
    )
    quiet: bool = output_option(
        False, "show no progress, and only the answer of the report", tier=EVERYDAY
    )
    brief: bool = output_option(
        False, "print the report without the `vllm bench serve` block", instead="print str(result)"
    )
    full: bool = output_option(
        False,
        "print everything that is known about the run",
        instead="write it with result.save(path) for `loadgen report --full`",
        tier=EVERYDAY,
        excludes=("brief",),
    )
    disable_tqdm: bool = output_option(
        False, "show progress as plain lines, without a bar", tier=COMPAT
    )
    log_level: Literal["debug", "info", "warning", "error"] = output_option(
        "warning", "lowest level of log messages on stderr"
    )

    @property
    def report_form(self) -> Literal["line", "brief", "block", "full"]:
        """How much of the report is printed."""
        if self.full:
            return "full"
        if self.brief:
            return "brief"
        return "line" if self.quiet else "block"

    @property
    def saves_result(self) -> bool:
        """Whether the result is written."""
        return any(getattr(self, name) for name in SAVING)


# Files that a run writes.
FILES = tuple(name for name, option in options(OutputSettings).items() if option.file)
