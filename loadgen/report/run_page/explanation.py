"""Charts of an explanation: the waterfall of the time to the first token, and the cloud of the
engine's steps.
"""

from collections.abc import Iterator

from loadgen.document import Drawing
from loadgen.document.charts.chart import BarLook, Bars, Chart, Curve, Panel, Scatter
from loadgen.document.charts.scale import Linear, Names
from loadgen.report.result.explanation import EngineSteps, Explanation
from loadgen.report.sections.explanation import LEAST_MS

# The title of each color, and its parts.
GROUPS: dict[BarLook, tuple[str, ...]] = {
    "loss": ("loadgen, or not sent yet", "cap", "retries", "connect", "client", "read_late"),
    "base": ("outside the engine", "outside", "path_stall"),
    "first": ("queue", "queue", "engine_stall"),
    "gain": ("prompt", "prompt"),
}
ROW = 34
HEIGHT = 150


def drawings(explain: Explanation) -> Iterator[Drawing]:
    """Draw what is known of it."""
    yield Drawing("waterfall", _waterfall(explain))
    if explain.steps is not None:
        yield Drawing("steps", _cloud(explain.steps))


def _waterfall(explain: Explanation) -> Chart:
    names = list(explain.bands)
    marks = []
    begins = [0.0] * len(names)
    for look, (title, *parts) in GROUPS.items():
        lengths = [
            sum(max(band.parts_ms.get(part, 0.0), 0.0) for part in parts)
            for band in explain.bands.values()
        ]
        ends = [begin + length for begin, length in zip(begins, lengths, strict=True)]
        if any(length >= LEAST_MS for length in lengths):
            places = [float(place) for place in range(len(names))]
            marks.append(Bars(title, places, begins, ends, look, [""] * len(names)))
        begins = ends
    return Chart(
        title="The time to the first token, from due",
        about="The parts of the time to the first token of fast and of slow requests",
        along="ms",
        scale=Linear.over("ms", begins),
        panels=(
            Panel(
                "requests from fast to slow", Names(tuple(names)), tuple(marks), ROW * len(names)
            ),
        ),
    )


def _cloud(steps: EngineSteps) -> Chart:
    pairs = sorted(steps.sample)
    tokens, lengths = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    most = max(tokens[-1], 1.0)
    marks = [Scatter("steps", tokens, lengths, most / 50)]
    fitted = steps.base_ms, steps.base_ms + 1e-3 * (steps.prompt_us or 0.0) * most
    line_marks = (Curve("fit, one stream", [0.0, most], list(fitted)),)
    return Chart(
        title="Steps of the engine, from the arrivals",
        about="The length of the engine's steps over the tokens of the prompts that ended in them",
        along="prompt tokens",
        scale=Linear.over("prompt tokens", [0.0, most]),
        panels=(
            Panel("ms", Linear.over("ms", [*lengths, *fitted]), (*marks, *line_marks), HEIGHT),
        ),
    )
