"""`loadgen replicate RUN.json`: measure again what a result measured, and compare both."""

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from loadgen.cli import exit_codes
from loadgen.config.serialize import flags, restored
from loadgen.errors import BadInput
from loadgen.lab.commands.folder import made
from loadgen.util.argument_parser import OneLineParser
from loadgen.util.redaction import MARK
from loadgen.util.terminal_text import Screen, printable

if TYPE_CHECKING:
    from loadgen.config.settings import RunSettings

# Files of the first run, and how much it said: the second one has its own.
LEFT_OUT = (
    "save_result",
    "append_result",
    "result_dir",
    "result_filename",
    "sglang_result",
    "records",
    "hlog",
    "html",
    "markdown",
    "junit",
    "capture",
    "json",
)
MEASURED = (exit_codes.DONE, exit_codes.SUSPECT, exit_codes.SLO_MISSED, exit_codes.ERRORS)


def main(argv: list[str]) -> int:
    """Run the command; returns its exit code."""
    parser = OneLineParser(
        prog="loadgen replicate",
        description="Run again what a saved result measured, with the same settings and seeds, and "
        "say whether both agree, by the rule of `loadgen compare`. Exit code 0: they agree, 8: "
        "they differ, 10: the runs cannot decide it. See docs/judge.md.",
    )
    parser.add_argument("result", metavar="RUN.json", help="a result (--save-result)")
    parser.add_argument("--base-url", metavar="URL", help="the server, where it is another one now")
    parser.add_argument(
        "--folder", metavar="FOLDER", default="replicate", help="for the files (replicate)"
    )
    arguments = parser.parse_args(argv)
    settings, records = asked(Path(arguments.result))
    folder = made(arguments.folder)
    if arguments.base_url:
        settings = settings.replace(base_url=arguments.base_url)
    files = ["--save-result", "--result-dir", str(folder), "--result-filename", "again.json"]
    if records:
        files += ["--records", str(folder / "again.jsonl")]
    command = [sys.executable, "-m", "loadgen", "run", *flags(settings), *files, "--quiet"]
    code = subprocess.run(command, check=False).returncode
    if code not in MEASURED:
        print(f"replicate: the second run ended with exit code {code}; nothing was compared")
        return code
    again = folder / ("again.jsonl" if records else "again.json")
    return compared(records or arguments.result, str(again))


def asked(path: Path) -> "tuple[RunSettings, str | None]":
    """Return the settings of a result as its user gave them, without the files that it wrote; and
    its records, which are compared if they are still there.

    Raises:
        BadInput: It is no result, or a secret is missing in it.
    """
    from loadgen.library.saved_files import load

    own = load(path).provenance.asked
    for name, value in own.items():
        if MARK in str(value):
            problem = f"{path} does not have the value of {name}, a secret"
            remedy = "give it in the environment, or repeat the run with loadgen run"
            raise BadInput("RUN.json", problem, remedy)
    records = own.get("records")
    settings = restored({name: value for name, value in own.items() if name not in LEFT_OUT})
    return settings, records if records and Path(records).exists() else None


def compared(first: str, second: str) -> int:
    """Print the comparison of two results, and whether they agree; returns the exit code."""
    from loadgen.analysis.compare import render
    from loadgen.analysis.compare.answer import Word, change_of
    from loadgen.library.compare import compare

    comparison = compare(first, second, names=("first", "again"))
    sys.stdout.write(render(comparison, Screen.of(sys.stdout)))
    change = change_of(comparison, comparison.candidates[0])
    if change.word is Word.SAME:
        word, code = "agree", exit_codes.DONE
    elif change.word is Word.UNDECIDED:
        word, code = "undecided", exit_codes.UNDECIDED
    else:
        word, code = "differ", exit_codes.CHANGED
    print(printable(f"replicate: {word}"))
    return code
