"""`AgentFile`: the recorded sessions of a file, in one of FORMATS."""

from collections.abc import Iterator
from pathlib import Path

from loadgen.errors import BadInput
from loadgen.workload.datasets.agentic import mlperf_conversations, otel_spans, tracelab_rounds, weka_trace
from loadgen.workload.datasets.agentic.json_row import read_rows
from loadgen.workload.datasets.agentic.recorded_session import RecordedSession
from loadgen.workload.files.mapped_file import DATASET_PATH

FORMAT = "--trace-format"
REMEDY = "give a file with sessions of agents"


# Each module says whether an object `is_row` of its format, and reads the `sessions` of a file.
FORMATS = {"weka": weka_trace, "mlperf": mlperf_conversations, "tracelab": tracelab_rounds, "otel": otel_spans}


class AgentFile:
    """A file of recorded sessions. One session at a time is in memory, unless its format mixes them.

    Args:
        path: The file.
        name: One of FORMATS, or `auto` to recognize it by its first object.

    Attributes:
        path: The file.
        format: The name of its format.

    Raises:
        BadInput: The file cannot be read, or is of none of the formats.
    """

    def __init__(self, path: Path, name: str = "auto") -> None:
        if name != "auto" and name not in FORMATS:
            raise BadInput(FORMAT, f"{name} has no sessions of agents", "give --dataset-name trace, or another format")
        self.path = path
        self.format = _format(path, name)

    def sessions(self) -> Iterator[RecordedSession]:
        """Yield the sessions, the same in every call.

        Raises:
            BadInput: A session is invalid, or there is none.
        """
        is_empty = True
        for session in FORMATS[self.format].sessions(self.path):
            is_empty = False
            yield session
        if is_empty:
            raise BadInput(DATASET_PATH, f"{self.path} has no session of the format {self.format}", REMEDY)


def _format(path: Path, name: str) -> str:
    row = next(read_rows(path, REMEDY), None)
    if row is None:
        raise BadInput(DATASET_PATH, f"{path} is empty", REMEDY)
    found = [known for known, form in FORMATS.items() if form.is_row(row.fields)]
    if name == "auto":
        if not found:
            raise row.error(f"unknown format, none of {', '.join(FORMATS)}", f"give {FORMAT}")
        return found[0]
    if found and name not in found:
        raise BadInput(FORMAT, f"{path} is of the format {found[0]}, not {name}", "leave it out")
    return name
