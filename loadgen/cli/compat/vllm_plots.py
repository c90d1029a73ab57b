"""vLLM's plots: the page of a run in place of its timeline."""

from pathlib import Path
from typing import Any

from loadgen.cli.compat.tool_flags import NONE, ONE, ToolFlag, no_op, refused

TIMELINE, ENDING = "plot_timeline", ".timeline.html"  # a marker, removed by `with_page`, and how vLLM names the file

FLAGS = (
    ToolFlag(
        "--plot-timeline",
        lambda value, given: {TIMELINE: True},
        "`--html NAME.timeline.html`, with the name of --result-filename: the run over time, and each request as a dot",
        values=NONE,
        becomes=("html",),
    ),
    no_op("--timeline-itl-thresholds", "no effect: colors of a plot", ONE),
    refused(
        "--plot-dataset-stats", "this plot is not available", "use `loadgen dataset`, which prints the lengths", NONE
    ),
)


def with_page(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings with the page that stands for the timeline."""
    found = dict(settings)
    if found.pop(TIMELINE, False):
        name = Path(found.get("result_filename") or "vllm.json")
        found.setdefault("html", str(Path(found.get("result_dir") or "") / name.with_suffix(ENDING)))
    return found
