"""The settings that say what is reported of a run, and where it is kept."""

import re
from dataclasses import dataclass, fields
from typing import Literal

from loadgen.config.option import OUTPUT, option
from loadgen.errors import BadInput

METRICS = ("ttft", "tpot", "itl", "e2el")
LOOPBACK = "127.0.0.1"
# Keys of the result that metadata would replace in vLLM's: here they name files, and say which runs are alike.
NAMING = ("date", "endpoint_type", "backend", "label", "model_id", "tokenizer_id", "num_prompts")


@dataclass(frozen=True, kw_only=True)
class OutputSettings:
    """What is printed and written; names and meanings are `vllm bench serve`'s."""

    percentile_metrics: str = option("ttft,tpot,itl", OUTPUT, "latencies to report: ttft,tpot,itl,e2el", metavar="LIST")
    metric_percentiles: str = option("99", OUTPUT, "percentiles to report", metavar="LIST")
    save_result: bool = option(False, OUTPUT, "write the result as JSON")
    save_detailed: bool = option(False, OUTPUT, "keep every request's lengths, latencies and text in it")
    append_result: bool = option(False, OUTPUT, "append to the file, one JSON object a line")
    label: str | None = option(None, OUTPUT, "kept in the result, and first in the name of its file (--backend)")
    result_dir: str | None = option(None, OUTPUT, "folder of the result file", metavar="DIR")
    result_filename: str | None = option(None, OUTPUT, "name of the result file", metavar="NAME", file=True)
    metadata: tuple[str, ...] = option((), OUTPUT, "KEY=VALUE pairs kept in the result", metavar="KEY=VALUE")
    records: str | None = option(None, OUTPUT, "write one JSON line per request as it ends", metavar="FILE", file=True)
    hlog: str | None = option(None, OUTPUT, "write the histograms as an HdrHistogram log", metavar="FILE", file=True)
    html: str | None = option(None, OUTPUT, "write the report as one page of HTML", metavar="FILE.html", file=True)
    capture: str | None = option(
        None, OUTPUT, "keep the responses as they came, with their times, to be replayed", metavar="FILE", file=True
    )
    prometheus: str | None = option(
        None,
        OUTPUT,
        "while it goes on, tell how far it is as Prometheus text at http://127.0.0.1:PORT/metrics",
        metavar="PORT|HOST:PORT",
    )
    json: bool = option(False, OUTPUT, "the result as one JSON object on stdout, all else on stderr")
    quiet: bool = option(False, OUTPUT, "no progress")
    disable_tqdm: bool = option(False, OUTPUT, "no progress bar (plain lines)")
    log_level: Literal["debug", "info", "warning", "error"] = option("warning", OUTPUT, "what is logged to stderr")

    def check_output(self) -> None:
        """Refuse what cannot be reported.

        Raises:
            BadInput: The first value that cannot be used.
        """
        for metric in self.percentile_metrics.split(","):
            if metric not in METRICS:
                raise BadInput("--percentile-metrics", f"{metric!r} is no metric", f"choose from {','.join(METRICS)}")
        for part in self.metric_percentiles.split(","):
            try:
                usable = 0 <= float(part) <= 100
            except ValueError:
                usable = False
            if not usable:
                raise BadInput(
                    "--metric-percentiles", f"{part!r} is no percentile", "write numbers from 0 to 100, as 50,99"
                )
        check_page("--html", self.html)
        for pair in self.metadata:
            key, equals, _ = pair.partition("=")
            if not equals:
                raise BadInput("--metadata", f"{pair!r} has no value", "write KEY=VALUE")
            if key.strip() in NAMING:
                problem = f"{key.strip()!r} is a key of the result itself, which names the run"
                raise BadInput("--metadata", problem, "choose another key")
        if self.prometheus is not None:
            parse_listen(self.prometheus)


FILES = tuple(each.name for each in fields(OutputSettings) if each.metadata["file"])  # that a run writes


def check_page(name: str, path: str | None) -> None:
    """Refuse a file that is to hold a page and is not named as one.

    Args:
        name: Of the flag.
        path: What it gives.

    Raises:
        BadInput: Naming it.
    """
    if path is not None and not path.endswith(".html"):
        raise BadInput(name, f"{path!r} is no name of a page", "write FILE.html")


def parse_percentiles(text: str) -> list[float]:
    """Read "50,99,99.9"; the settings' check has refused anything else."""
    return [float(part) for part in text.split(",")]


def parse_listen(text: str) -> tuple[str, int]:
    """Read "9100", "0.0.0.0:9100" or "[::1]:9100": where --prometheus listens, on loopback unless a host is named.

    Raises:
        BadInput: It is neither.
    """
    host, colon, port = text.rpartition(":")
    bare = host.removeprefix("[").removesuffix("]")
    port_fits = re.fullmatch("[0-9]{1,5}", port) and 0 < int(port) < 65536
    if not port_fits or (colon and not bare) or (":" in bare and host == bare):
        raise BadInput("--prometheus", f"{text!r} is no place to listen", "write a port from 1 to 65535, or HOST:PORT")
    return bare or LOOPBACK, int(port)
