"""What other load generators would have printed for a recorded run, and why it differs from
loadgen's numbers.
"""

import sys
from pathlib import Path

import orjson

from loadgen.errors import BadInput
from loadgen.lab.tools.emulate import aiperf_files, inference_perf_files
from loadgen.lab.tools.emulate.comparison import TOOLS, ToolComparison, compare, render
from loadgen.metrics.records.file import RecordFile
from loadgen.report import to_json
from loadgen.util.files import atomic_file, private_opener
from loadgen.util.terminal_text import Screen

FILES = {"aiperf": aiperf_files.contents, "inference-perf": inference_perf_files.contents}
# Why the files of other tools cannot be made without figures that nobody has measured.
NOT_WRITTEN = {
    "guidellm": "the file of guidellm requires times of its own scheduler, which no other tool has",
    "agentx": "a submission of AgentX requires AIPerf's own idle gaps, cache-bust prefixes, "
    "coverage and submission_valid, which a run of loadgen cannot have",
}

__all__ = ["TOOLS", "ToolComparison", "compare", "emulate", "render", "write_files"]


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
    if tool in NOT_WRITTEN:
        field = "--as" if folder is None else "--to"
        raise BadInput(field, NOT_WRITTEN[tool], f"give --as {' or '.join(FILES)}")
    if tool not in (*TOOLS, *FILES):
        known = ", ".join(dict.fromkeys((*TOOLS, *FILES)))
        raise BadInput("--as", f"unknown tool {tool!r}", f"choose from {known}")
    if not RecordFile.is_one(path):
        raise BadInput("--as", f"{path} has no records", "name a file that --records wrote")
    if folder is not None:
        if tool not in FILES:
            problem = f"the files of {tool} are not written"
            raise BadInput("--to", problem, f"give --as {' or '.join(FILES)}")
        if Path(folder).exists() and not Path(folder).is_dir():
            raise BadInput("--to", f"{folder} is a file", "name a folder")
        return "".join(f"Saved: {file}\n" for file in write_files(path, tool, folder))
    if tool in FILES and tool not in TOOLS:
        raise BadInput("--as", f"of {tool} only the files are written", "add --to FOLDER")
    comparison = compare(path, tool)
    if as_json:
        return to_json(comparison.to_dict()) + "\n"
    return render(comparison, Screen.of(sys.stdout))


def write_files(path: str, tool: str, folder: str) -> list[Path]:
    """Write the files that a tool would have written for a file of records; return them.

    Raises:
        BadInput: The records lack what the files have.
        OSError: A file cannot be written.
    """
    contents = FILES[tool](path)
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        with atomic_file(Path(folder, name), private_opener) as file:
            if name.endswith(".jsonl"):
                file.writelines(orjson.dumps(line) + b"\n" for line in content)
            else:
                file.write(orjson.dumps(content, option=orjson.OPT_INDENT_2) + b"\n")
    return [Path(folder, name) for name in contents]
