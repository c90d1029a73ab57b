"""`loadgen import`: import published results into the store of a study, or draft the study of a
page.
"""

import sys
from pathlib import Path

from loadgen.cli import exit_codes
from loadgen.errors import BadInput
from loadgen.util.argument_parser import OneLineParser
from loadgen.util.number_format import plural
from loadgen.util.terminal_text import Screen

SUFFIX = ".published"


def main(argv: list[str]) -> int:
    """Run the command; returns its exit code."""
    parser = OneLineParser(
        prog="loadgen import",
        description="Import published results into a store of a study. Each becomes a run of the "
        "arm that its serving command matches. The files are not changed, and no result is "
        "imported twice. With --make-study, write the study of one page instead. See "
        "docs/studies.md.",
    )
    parser.add_argument(
        "--make-study",
        metavar="FILE.yaml",
        type=Path,
        help="write the study of the page that is given in place of STUDY, and import nothing",
    )
    parser.add_argument("study", metavar="STUDY", help="the study's file")
    parser.add_argument(
        "files",
        metavar="FILE[#N]",
        nargs="*",
        help="a Markdown page or a text that contains benchmark output; or a JSON result of "
        "loadgen, vllm bench serve, SGLang's bench_serving (JSON lines) or guidellm; #N: only its "
        "N-th result",
    )
    parser.add_argument(
        "--store",
        metavar="DIR",
        type=Path,
        help="the folder of the store (NAME.published, with the name of the study)",
    )
    parser.add_argument(
        "--as",
        metavar="STAGE/ARM[:WORKLOAD]",
        dest="as_",
        help="the arm of results that were chosen with #N, or that have no serving command next to "
        "them",
    )
    arguments = parser.parse_args(argv)
    if arguments.make_study is not None:
        return _make_study(arguments.make_study, [arguments.study, *arguments.files])
    if not arguments.files:
        raise BadInput((), "no FILE is given", "name a page or a result after the study")
    from loadgen.document import Answer, Colour, Document, Items, terminal_writer
    from loadgen.lab.importer.entries import Source
    from loadgen.lab.importer.importer import Importer, store
    from loadgen.lab.importer.placement import Arms
    from loadgen.lab.study.execute.publications import counted
    from loadgen.lab.study.execute.trial import Trial
    from loadgen.lab.study.plan.planner import plan
    from loadgen.lab.study.spec import study_file

    file = study_file.read(Path(arguments.study))
    sources = [Source.read(name) for name in arguments.files]
    with file.named():
        arms = Arms(plan(file.study))
    arm = arms.named(arguments.as_) if arguments.as_ is not None else None
    folder = arguments.store or Path(file.study.name + SUFFIX)
    with store(folder, file) as trial_store:
        importer = Importer(trial_store, arms, file.study, arm)
        summaries = [importer.add(source) for source in sources]
    trials: list[Trial] = []
    lines: list[str] = []
    for summary in summaries:
        trials += summary.imported
        lines += summary.lines
    unplaced = sum(summary.unplaced for summary in summaries)
    where = f" into {folder}" if trials else ""
    parts = [(f"IMPORTED: {counted(trials)}{where}", Colour.GREEN)]
    following = f"read what the results show: `loadgen tune report {folder}`"
    if unplaced:
        parts = [(f"INCOMPLETE: {counted(trials)} imported{where}", Colour.YELLOW)]
        parts += [(f"{unplaced} not placed", Colour.YELLOW)]
        following = "name the arms of the results that are not placed: `--as STAGE/ARM`"
    title = f"Import of {plural(len(sources), 'file')} into the study {file.study.name}"
    document = Document(title, (Items.of(lines),), (Answer(tuple(parts), following),))
    sys.stdout.write(terminal_writer.report(document, Screen.of(sys.stdout)))
    return exit_codes.UNPLACED if unplaced else exit_codes.DONE


def _make_study(path: Path, pages: list[str]) -> int:
    """Write the study of a page; returns the exit code.

    Raises:
        BadInput: There are several pages, the study's file exists, or the page has no result with a
            serving command.
    """
    from loadgen.cli.output import writing
    from loadgen.lab.audit.auditor import read
    from loadgen.lab.importer.study_draft import draft
    from loadgen.lab.study.plan.planner import plan
    from loadgen.lab.study.spec import study_file

    if len(pages) > 1:
        raise BadInput("--make-study", f"{len(pages)} pages are given", "name one page")
    if path.exists():
        raise BadInput("--make-study", f"{path} exists", "name a new file")
    text = draft(pages[0], read(pages[0]))
    with writing("--make-study", str(path)):
        path.write_text(text, encoding="utf-8")
    file = study_file.read(path)
    with file.named():
        plan(file.study)
    checks = text.count("# CHECK")
    print(f"Wrote: {path}; complete its {checks} comments with CHECK before you run it")
    print(f"loadgen import {path} {pages[0]} places the results of the page")
    return exit_codes.DONE
