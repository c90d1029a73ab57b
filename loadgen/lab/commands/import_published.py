"""`loadgen import STUDY FILE...`: import published results into the store of a study."""

import sys
from pathlib import Path

from loadgen.cli import exit_codes
from loadgen.util.argument_parser import OneLineParser
from loadgen.util.terminal_text import printable

SUFFIX = ".published"


def main(argv: list[str]) -> int:
    """Run the command; returns its exit code."""
    parser = OneLineParser(
        prog="loadgen import",
        description="Import published results into a store of a study. Each becomes a run of the "
        "arm that its serving command matches. The files are not changed, and no result is "
        "imported twice. See docs/studies.md.",
    )
    parser.add_argument("study", metavar="STUDY", help="the study's file")
    parser.add_argument(
        "files",
        metavar="FILE[#N]",
        nargs="+",
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
        help="the arm of results that were chosen with #N, or have no serving command beside them",
    )
    arguments = parser.parse_args(argv)
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
    for summary in summaries:
        trials += summary.imported
        sys.stdout.write("".join(f"{printable(line)}\n" for line in summary.lines))
    unplaced = sum(summary.unplaced for summary in summaries)
    where = f" into {folder}" if trials else ""
    print(f"{counted(trials)} imported{where}" + (f"; {unplaced} not placed" if unplaced else ""))
    return exit_codes.UNPLACED if unplaced else exit_codes.DONE
