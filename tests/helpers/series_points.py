"""Makes points of series, and series of them, and reads what is shown of them."""

from typing import Any

from loadgen.report.result.series import Series
from loadgen.report.series import MIN_FOR_KNEE, table
from loadgen.report.series_answer import answer
from tests.helpers import run_facts, saved_json


def result(rate: float, *ttft_ms: float, **changes: Any) -> dict[str, Any]:
    """A point of a run at a rate, whose requests had these TTFTs."""
    ran = run_facts.measured(
        [run_facts.steady(index, due=10 * index, ttft=each) for index, each in enumerate(ttft_ms)]
    )
    schedule = run_facts.due_at(*[10 * index for index in range(len(ttft_ms))])
    data = run_facts.result(ran, schedule=schedule)
    data["loadgen"]["provenance"]["prompts"] = {"sha256": str(rate)}
    return (
        saved_json.point(rate, data, ran, limits="ttft_p99<100ms,e2el_p95<1s", saved=[]) | changes
    )


def swept(level: float, e2el_ms: float) -> dict[str, Any]:
    """A point of which all but the mean E2EL is the same."""
    point = enough(result(level, 20))
    return point | {"latency_ms": point["latency_ms"] | {"e2el_mean": e2el_ms}}


def enough(point: dict[str, Any]) -> dict[str, Any]:
    """The point with as many requests as a knee needs."""
    return point | {"result": point["result"] | {"completed": MIN_FOR_KNEE}}


def together(*points: dict[str, Any], kind: str = "search", **found: Any) -> dict[str, Any]:
    data = saved_json.begun(kind, "rate", "ttft_p99<100ms,e2el_p95<1s", "due")
    data["points"] = list(points)
    if found:
        data["found"] = {"level": None, "fails": None, "last": None} | found
    saved_json.conclude(data)
    return data


def answer_line(data: dict[str, Any]) -> str:
    """The answer in one line."""
    return answer(Series.from_dict(data)).text


def columns(series: Series, *, with_bounds: bool = False) -> list[tuple[str, list[str]]]:
    """The columns of the table: their headings, and the texts of their cells."""
    shown = table(series, with_bounds=with_bounds)
    texts = [["".join(span.text for span in line) for (line,) in row] for row in shown.rows]
    return [
        (head, list(cells))
        for head, cells in zip(shown.head, zip(*texts, strict=True), strict=True)
    ]
