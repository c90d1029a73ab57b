"""What other load generators would have printed for a recorded run, and why it differs from
loadgen's numbers.
"""

import sys

from loadgen.errors import BadInput
from loadgen.lab.tools.emulate import aiperf_files, inference_perf_files
from loadgen.lab.tools.emulate.comparison import TOOLS, ToolComparison, compare, render
from loadgen.report import to_json
from loadgen.util.terminal_text import Screen

FILES = {"aiperf": aiperf_files.write, "inference-perf": inference_perf_files.write}
# Why the files of other tools cannot be made without figures that nobody has measured.
NOT_WRITTEN = {
    "guidellm": "the file of guidellm requires times of its own scheduler, which no other tool has",
    "agentx": "a submission of AgentX requires AIPerf's own idle gaps, cache-bust prefixes, "
    "coverage and submission_valid, which a run of loadgen cannot have",
}

__all__ = ["TOOLS", "ToolComparison", "compare", "emulate", "render"]


def emulate(path: str, tool: str, *, as_json: bool, folder: str | None = None) -> str:
    """Return what `loadgen report --as TOOL` prints: an entry point of `loadgen.emulations`.

    Args:
        path: A file of records.
        tool: The name of the tool.
        as_json: Whether to write JSON instead of a table.
        folder: Where to write the files of the tool, whose names are then returned; None: nowhere.

    Raises:
        BadInput: The tool is unknown or its files are, or a file cannot be read.
        OSError: A file cannot be written.
    """
    if folder is not None:
        if tool not in FILES:
            reason = NOT_WRITTEN.get(tool, f"the files of {tool} are not written")
            raise BadInput("--to", reason, f"give --as {' or '.join(FILES)}")
        return "".join(f"Saved: {file}\n" for file in FILES[tool](path, folder))
    if tool in FILES and tool not in TOOLS:
        raise BadInput("--as", f"of {tool} only the files are written", "add --to FOLDER")
    comparison = compare(path, tool)
    if as_json:
        return to_json(comparison.to_dict()) + "\n"
    return render(comparison, Screen.of(sys.stdout))
