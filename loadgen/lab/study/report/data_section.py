"""The section of a report about the data of its workloads."""

import math
import shlex
from collections.abc import Iterator
from pathlib import PurePath

from loadgen.config.settings import RunSettings
from loadgen.lab.study.report.report_model import ReportModel
from loadgen.lab.study.spec.workloads import loads
from loadgen.report.html import Block, Code, Heading, Items, Paragraph, Span, Tone, line, prose
from loadgen.util.number_format import plural
from loadgen.workload.datasets import sharegpt_file


def data_section(model: ReportModel) -> Iterator[Block]:
    """Yield the data of each workload, and the commands that fetch it.

    Args:
        model: Contents of the report.
    """
    found = loads(model.study)
    fetched = dict.fromkeys(command for load in found.values() if (command := _fetch(load)))
    yield Heading(3, "Benchmark Dataset")
    yield Items(tuple(line(Span(name, Tone.STRONG), f": {_described(load)}") for name, load in found.items()))
    if fetched:
        yield Paragraph(prose("Download the data first, into the folder in which `loadgen` runs:"))
        yield Code("\n".join(fetched), "bash")


def _fetch(load: RunSettings) -> str:
    path = PurePath(load.dataset_path or "")
    if load.dataset_name != "sharegpt" or path.name != sharegpt_file.PUBLISHED[1]:
        return ""
    return f"loadgen dataset fetch sharegpt --to {shlex.quote(str(path.parent))}"


def _described(load: RunSettings) -> str:
    if load.dataset_name == "random":
        data = f"random prompts of {load.random_input_len} tokens, answers of {load.random_output_len} tokens"
    elif load.dataset_name == "sharegpt":
        data = "conversations of ShareGPT"
    else:
        data = f"{load.dataset_name} {load.dataset_path or ''}".strip()
    parts = [
        data,
        plural(load.num_prompts, "request") if load.num_prompts else f"{load.duration:g} s",
        *([f"{load.request_rate:g} requests/s"] if math.isfinite(load.request_rate) else []),
        *([f"at most {load.max_concurrency} in flight"] if load.max_concurrency else []),
    ]
    return ", ".join(parts)
