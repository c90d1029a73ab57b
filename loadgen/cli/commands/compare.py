"""`loadgen compare A B...`: compare runs, with confidence intervals of the differences."""

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from loadgen.cli import exit_codes
from loadgen.cli.output import append_step_summary, wants_step_summary, writing
from loadgen.config.option import flag
from loadgen.config.output import PAGE
from loadgen.errors import BadInput
from loadgen.util.argument_parser import OneLineParser
from loadgen.util.files import write_atomic
from loadgen.util.terminal_text import Screen, printable

if TYPE_CHECKING:
    from loadgen.analysis.compare import JudgedComparison, Side

MAX_SIDES = 26


def main(argv: list[str]) -> int:
    """Run the command; returns its exit code."""
    arguments = _parser().parse_args(argv)
    from loadgen.analysis import compare

    PAGE.check("--html", arguments.html)
    _check_apart(arguments)
    if arguments.junit is not None and not arguments.fail_if:
        raise BadInput(
            "--junit", "has nothing to report", 'give --fail-if as well, for example "ttft_p99>+5%"'
        )
    sides = list(map(compare.Side.read, _names(arguments), arguments.sides))
    if arguments.save_noise is not None:
        return _save_noise(arguments, sides[0])
    noise = None if arguments.noise is None else compare.NoiseFile.read(arguments.noise)
    comparison = compare.JudgedComparison.of(
        sides, noise=noise, fail_if=arguments.fail_if, anyway=arguments.anyway
    )
    _write(arguments, comparison)
    if arguments.json:
        from loadgen.report import to_json

        sys.stdout.write(to_json(comparison.to_dict()) + "\n")
    else:
        sys.stdout.write(compare.render(comparison, Screen.of(sys.stdout)))
    for judgement in comparison.judgements:
        print(printable(str(judgement)), file=sys.stderr if arguments.json else sys.stdout)
    outcomes = [judgement.failed for judgement in comparison.judgements]
    if any(outcomes):
        return exit_codes.CHANGED
    return exit_codes.UNDECIDED if None in outcomes else exit_codes.DONE


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog="loadgen compare",
        description="Compare runs with those of the first side, the baseline, and show each "
        "difference with its confidence interval. A side is a result of `loadgen run` "
        "(--save-result, --json), of `vllm bench serve` or of SGLang's bench_serving, a file of "
        "--records, or a folder of such files. Several results in one file (--append-result) count "
        "as several starts of the server. See docs/compare.md.",
    )
    parser.add_argument(
        "sides", metavar="FILE|FOLDER", nargs="+", help="the sides, the baseline first"
    )
    parser.add_argument(
        "--names", metavar="A,B", help="names of the sides, in place of those from their paths"
    )
    parser.add_argument(
        "--noise",
        metavar="FILE",
        help="the variation between starts, from --save-noise; used if the sides have too few "
        "starts",
    )
    parser.add_argument(
        "--save-noise",
        metavar="FILE",
        help="measure the variation between the starts of one side (three or more), and save it "
        "for --noise",
    )
    parser.add_argument(
        "--anyway",
        action="store_true",
        help="compare runs even if their settings or prompts differ",
    )
    parser.add_argument(
        "--fail-if",
        metavar="CONDITION",
        action="append",
        default=[],
        help='exit 8 if the condition holds, 10 if the runs cannot tell: "ttft_p99>+5%%", '
        '"output_throughput<-3%%", "error_rate>+1pp"; repeatable',
    )
    parser.add_argument(
        "--markdown",
        metavar="FILE",
        help="also write the comparison as Markdown that GitHub renders",
    )
    parser.add_argument(
        "--junit",
        metavar="FILE",
        help="also write JUnit XML, one test case per condition of --fail-if",
    )
    parser.add_argument("--html", metavar="FILE", help="also write the comparison as an HTML page")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    return parser


def _names(arguments: argparse.Namespace) -> list[str]:
    from loadgen.analysis.compare.side import names as side_names

    count = len(arguments.sides)
    if count > MAX_SIDES:
        raise BadInput((), f"{count} sides are too many", f"give at most {MAX_SIDES}")
    if arguments.save_noise is None:
        if count == 1:
            raise BadInput(
                (),
                "only one side is given",
                "name a second one to compare it with, or give --save-noise",
            )
    elif count > 1:
        raise BadInput("--save-noise", "takes one side", "leave out the others")
    for name in (
        ("noise", "fail_if", "markdown", "junit", "html", "json")
        if arguments.save_noise is not None
        else ()
    ):
        if getattr(arguments, name):
            raise BadInput(
                flag(name),
                "cannot be combined with --save-noise, which compares nothing",
                "leave one of the two out",
            )
    if arguments.names is None:
        return side_names(arguments.sides)
    names = [name.strip() for name in arguments.names.split(",")]
    if len(names) != count or len(set(names)) < count or not all(names):
        raise BadInput(
            "--names",
            f"{arguments.names!r} does not name {count} sides",
            "give each side a different name",
        )
    return names


def _check_apart(arguments: argparse.Namespace) -> None:
    """Refuse to overwrite an input file, or to write two outputs into one file."""
    used = {
        os.path.realpath(path): "an input file"
        for path in (*arguments.sides, arguments.noise)
        if path is not None
    }
    for name in ("save_noise", "markdown", "junit", "html"):
        path = getattr(arguments, name)
        if path is not None:
            use = used.get(os.path.realpath(path))
            if use is not None:
                raise BadInput(flag(name), f"{path} is also {use}", "choose another path")
            used[os.path.realpath(path)] = f"the output of {flag(name)}"


def _save_noise(arguments: argparse.Namespace, side: "Side") -> int:
    from loadgen.analysis import compare
    from loadgen.analysis.compare import texts
    from loadgen.document import Paragraph, terminal_writer

    noise = compare.NoiseFile.of(side, anyway=arguments.anyway)
    with writing("--save-noise", arguments.save_noise):
        noise.save(arguments.save_noise)
    title = (
        f"Standard deviation of one start of {side.path} ({texts.runs(side)}), saved to "
        f"{arguments.save_noise}:"
    )
    blocks = (Paragraph.of(title), texts.noise_table(noise))
    sys.stdout.write(terminal_writer.text(blocks, terminal_writer.width(Screen.of(sys.stdout))))
    return exit_codes.DONE


def _write(arguments: argparse.Namespace, comparison: "JudgedComparison") -> None:
    """Write the files that are asked for, with the outcome of the conditions before the numbers."""
    if not (arguments.markdown or arguments.junit or arguments.html or wants_step_summary()):
        return
    from msgspec import structs

    from loadgen.analysis.compare import page
    from loadgen.document import page_writer
    from loadgen.report import gate
    from loadgen.report.ci_summary import gate_blocks

    demands = [judgement.demand for judgement in comparison.judgements]
    document = page(comparison)
    if demands:
        document = structs.replace(document, blocks=(*gate_blocks(demands), *document.blocks))
    suite = gate.Suite("compare", document.title, demands)
    texts: dict[str, Callable[[], str]] = {
        "markdown": lambda: page_writer.github(document),
        "junit": lambda: gate.junit_xml([suite]),
        "html": lambda: page_writer.html(document),
    }
    for name, text in texts.items():
        if (path := getattr(arguments, name)) is not None:
            with writing(flag(name), path):
                write_atomic(Path(path), text())
    if wants_step_summary():
        append_step_summary(page_writer.github(document))
