"""`loadgen import STUDY FILE...`: results that others published, into a store of a study."""

import sys
from pathlib import Path

from loadgen.cli import exit_codes
from loadgen.cli.import_guard import undisturbed
from loadgen.util.argument_parser import OneLineParser
from loadgen.util.terminal_text import printable

SUFFIX = ".published"


def main(argv: list[str]) -> int:
    """Run the command."""
    parser = OneLineParser(
        prog="loadgen import",
        description="Put results that others published into a store of a study, each as a run of the arm that its "
        "serving command starts: docs/studies.md. Files are read only, and nothing is imported twice.",
    )
    parser.add_argument("study", metavar="STUDY", help="the study's file")
    parser.add_argument(
        "files",
        metavar="FILE[#N]",
        nargs="+",
        help="a Markdown page or a text with blocks of results; or a result of loadgen, vllm bench serve, SGLang's "
        "bench_serving (JSON lines) or guidellm as JSON; with #N its N-th result alone",
    )
    parser.add_argument(
        "--store", metavar="DIR", type=Path, help="where they are kept (NAME.published, of the study's name)"
    )
    parser.add_argument(
        "--as",
        metavar="STAGE/ARM[:WORKLOAD]",
        dest="as_",
        help="what results are of that were named with #N, or stand beside no serving command",
    )
    arguments = parser.parse_args(argv)
    with undisturbed():
        from loadgen.tuning.importer.arms import Arms
        from loadgen.tuning.importer.entries import Source
        from loadgen.tuning.importer.importer import Importer, store
        from loadgen.tuning.plan.planner import plan
        from loadgen.tuning.spec import study_file

    file = study_file.read(Path(arguments.study))
    sources = [Source.read(name) for name in arguments.files]
    with file.named():
        arms = Arms(plan(file.study))
    arm = arms.named(arguments.as_) if arguments.as_ is not None else None
    folder = arguments.store or Path(file.study.name + SUFFIX)
    with store(folder, file) as kept:
        importer = Importer(kept, arms, file.study, arm)
        summaries = [importer.add(source) for source in sources]
    sys.stdout.write("".join(f"{printable(line)}\n" for each in summaries for line in each.lines))
    imported, unplaced = sum(each.imported for each in summaries), sum(each.unplaced for each in summaries)
    print(f"{imported} imported into {folder}" + (f", {unplaced} could not be placed" if unplaced else ""))
    return exit_codes.UNPLACED if unplaced else exit_codes.DONE
