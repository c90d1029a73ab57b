"""`loadgen compare A B...`: compare runs, with confidence intervals of the differences."""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from loadgen.cli import exit_codes, step_summary
from loadgen.cli.output_file import writing
from loadgen.config.option import flag
from loadgen.config.validate import check_page
from loadgen.errors import BadInput
from loadgen.util.argument_parser import OneLineParser
from loadgen.util.terminal_text import Screen, printable

if TYPE_CHECKING:
    from loadgen.analysis.compare import JudgedComparison, Side
    from loadgen.report.gate import Demand
    from loadgen.report.html import Document

MAX_SIDES = 26


def main(argv: list[str]) -> int:
    """Run the command; returns its exit code."""
    arguments = _parser().parse_args(argv)
    from loadgen.analysis import compare

    check_page("--html", arguments.html)
    _check_apart(arguments)
    if arguments.junit is not None and not arguments.fail_if:
        raise BadInput("--junit", "has nothing to report", 'give --fail-if as well, for example "ttft_p99>+5%"')
    sides = [compare.Side.read(*each) for each in zip(_names(arguments), arguments.sides, strict=True)]
    if arguments.save_noise is not None:
        return _save_noise(arguments, sides[0])
    noise = None if arguments.noise is None else compare.NoiseFile.read(arguments.noise)
    found = compare.JudgedComparison.of(sides, noise=noise, fail_if=arguments.fail_if, anyway=arguments.anyway)
    judged = found.judgements
    _write(arguments, found)
    if arguments.json:
        from loadgen.report import to_json

        sys.stdout.write(to_json(found.to_dict()) + "\n")
    else:
        sys.stdout.write(compare.render(found, Screen.of(sys.stdout)))
    for each in judged:
        print(printable(str(each)), file=sys.stderr if arguments.json else sys.stdout)
    if any(each.failed for each in judged):
        return exit_codes.CHANGED
    return exit_codes.INVALID if any(each.failed is None for each in judged) else exit_codes.DONE


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog="loadgen compare",
        description="Compare runs with those of the first side, the baseline, and show each difference with its "
        "confidence interval. A side is a result of `loadgen run` (--save-result, --json), of `vllm bench serve` or of "
        "SGLang's bench_serving, a file of --records, or a folder of such files. Several results in one file "
        "(--append-result) count as several starts of the server. See docs/compare.md.",
    )
    parser.add_argument("sides", metavar="FILE|FOLDER", nargs="+", help="the sides, the baseline first")
    parser.add_argument("--names", metavar="A,B", help="names of the sides, in place of those from their paths")
    parser.add_argument(
        "--noise",
        metavar="FILE",
        help="the variation between starts, from --save-noise; used if the sides have too few starts",
    )
    parser.add_argument(
        "--save-noise",
        metavar="FILE",
        help="measure the variation between the starts of one side (three or more), and save it for --noise",
    )
    parser.add_argument("--anyway", action="store_true", help="compare runs even if their settings or prompts differ")
    parser.add_argument(
        "--fail-if",
        metavar="CONDITION",
        action="append",
        default=[],
        help='exit 8 if the condition holds: "ttft_p99>+5%%", "output_throughput<-3%%", "error_rate>+1pp"; repeatable',
    )
    parser.add_argument("--markdown", metavar="FILE", help="also write the comparison as Markdown that GitHub renders")
    parser.add_argument(
        "--junit", metavar="FILE", help="also write JUnit XML, one test case per condition of --fail-if"
    )
    parser.add_argument("--html", metavar="FILE", help="also write the comparison as an HTML page")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    return parser


def _names(arguments: argparse.Namespace) -> list[str]:
    from loadgen.analysis.compare.names import names as side_names

    count = len(arguments.sides)
    if count > MAX_SIDES:
        raise BadInput("FILE", f"{count} sides are too many", f"give at most {MAX_SIDES}")
    if arguments.save_noise is None:
        if count == 1:
            raise BadInput(
                "FILE", "only one side is given", "name a second one to compare it with, or give --save-noise"
            )
    elif count > 1:
        raise BadInput("--save-noise", "takes one side", "leave out the others")
    for name in ("noise", "fail_if", "markdown", "junit", "html", "json") if arguments.save_noise is not None else ():
        if getattr(arguments, name):
            raise BadInput(
                flag(name), "cannot be combined with --save-noise, which compares nothing", "leave one of the two out"
            )
    if arguments.names is None:
        return side_names(arguments.sides)
    names = [each.strip() for each in arguments.names.split(",")]
    if len(names) != count or len(set(names)) < count or not all(names):
        raise BadInput("--names", f"{arguments.names!r} does not name {count} sides", "give each side a different name")
    return names


def _check_apart(arguments: argparse.Namespace) -> None:
    """Refuse to overwrite an input file, or to write two outputs into one file."""
    used = {os.path.realpath(path): "an input file" for path in (*arguments.sides, arguments.noise) if path is not None}
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

    noise = compare.NoiseFile.of(side, anyway=arguments.anyway)
    with writing("--save-noise", arguments.save_noise):
        noise.save(arguments.save_noise)
    title = f"Standard deviation of one start of {side.path} ({texts.runs(side)}), saved to {arguments.save_noise}:"
    print(printable(title))
    print("\n".join(f"  {line}" for line in texts.noise_lines(noise)))
    return exit_codes.DONE


def _write(arguments: argparse.Namespace, found: "JudgedComparison") -> None:
    """Write the files that are asked for, with the outcome of the conditions before the numbers."""
    if not (arguments.markdown or arguments.junit or arguments.html or step_summary.wanted()):
        return
    from loadgen.analysis.compare import page
    from loadgen.report import html, junit
    from loadgen.util.files import write_atomic

    demands = [each.demand for each in found.judgements]
    document = _with_gate(page(found), demands)
    suite = junit.Suite("compare", document.title, demands)
    texts: dict[str, Callable[[], str]] = {
        "markdown": lambda: html.github(document),
        "junit": lambda: junit.xml([suite]),
        "html": lambda: html.html(document),
    }
    for name, text in texts.items():
        if (path := getattr(arguments, name)) is not None:
            with writing(flag(name), path):
                write_atomic(Path(path), text())
    if step_summary.wanted():
        step_summary.append(html.github(document))


def _with_gate(document: "Document", demands: "Sequence[Demand]") -> "Document":
    from loadgen.report.ci_summary import gate_blocks

    if not demands:
        return document
    blocks = document.blocks
    place = next(number for number, block in enumerate(blocks, 1) if block.shape == "badge")
    return replace(document, blocks=(*blocks[:place], *gate_blocks(demands), *blocks[place:]))
