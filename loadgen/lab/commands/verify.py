"""`loadgen verify RUN.jsonl`: compute the numbers of a saved result again, from its records."""

from pathlib import Path

from loadgen.cli import exit_codes
from loadgen.errors import BadInput
from loadgen.util.argument_parser import OneLineParser
from loadgen.util.number_format import plural
from loadgen.util.terminal_text import printable


def main(argv: list[str]) -> int:
    """Run the command; returns its exit code."""
    parser = OneLineParser(
        prog="loadgen verify",
        description="Compute the numbers of a saved result again from its records, by a second "
        "program that shares no code with the first; check seeds, schedule and verdict; and say "
        "what cannot be checked. Exit code 0: no difference, 1: differences. See docs/judge.md.",
    )
    parser.add_argument("records", metavar="RUN.jsonl", help="the records of a run (--records)")
    parser.add_argument(
        "result",
        metavar="RESULT.json",
        nargs="?",
        help="its result (--save-result); the one that the run saved",
    )
    arguments = parser.parse_args(argv)
    from loadgen.lab.verify import findings
    from loadgen.lab.verify.records import NotVerifiable, read, read_result

    try:
        run = read(Path(arguments.records))
        path = arguments.result or saved_by(run.settings)
        result = read_result(Path(path))
    except NotVerifiable as error:
        raise BadInput((), error.problem, error.remedy) from error
    verified = findings.verified(run, result)
    computed = f"{plural(verified.computed, 'number')} of {path} computed again from the records"
    print(printable(f"verify: {plural(len(verified.problems), 'difference')}; {computed}"))
    for problem in verified.problems:
        print(printable(f"differs: {problem}"))
    for reason, parts in verified.unchecked.items():
        numbers = plural(sum(parts.values()), "number")
        print(printable(f"not checked: {numbers} in {', '.join(parts)}: {reason}"))
    print("not checked: that the records are true; the texts of the prompts, which they lack")
    return exit_codes.FOUND if verified.problems else exit_codes.DONE


def saved_by(settings: object) -> str:
    """Return the file of the result that a run saved.

    Raises:
        BadInput: It saved none under a fixed name.
    """
    assert isinstance(settings, dict)
    name = settings.get("result_filename")
    if not settings.get("save_result") or not name:
        problem = "the run saved no result under a name of its own"
        raise BadInput("RESULT.json", problem, "give the file of the result after the records")
    return str(Path(settings.get("result_dir") or ".") / name)
