"""`loadgen dataset`: show or export the prompts of a run, fetch a published file, show the prompt cache."""

import contextlib
import dataclasses
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from loadgen.cli import exit_codes, flags, run_settings
from loadgen.cli.compat.tool_flags import flags_as_written
from loadgen.cli.live.progress_line import ProgressLine, preparing_text
from loadgen.cli.topic_parser import TopicParser
from loadgen.config.data import DataSettings
from loadgen.config.option import flag
from loadgen.errors import BadInput
from loadgen.util import terminal_text
from loadgen.util.argument_parser import UNKNOWN
from loadgen.util.terminal_text import has_colours

if TYPE_CHECKING:
    from loadgen.config.settings import RunSettings
    from loadgen.workload.datasets.overview import Overview
    from loadgen.workload.prompt import Prompt
    from loadgen.workload.target import Target

# The settings of `loadgen run` that apply here, beside those of the data set.
OTHER_FIELDS = (
    *("backend", "endpoint", "model", "tokenizer", "extra_body"),
    *("num_prompts", "seed", "seed_arrivals", "seed_prompts", "seed_order"),
    *("json", "quiet", "log_level"),
)
FIELDS = frozenset((*(field.name for field in dataclasses.fields(DataSettings)), *OTHER_FIELDS))
MAIN_FLAGS = (
    *("--dataset-name", "--dataset-path", "--num-prompts", "--random-input-len", "--random-output-len"),
    *("--tokenizer", "--export"),
)
EXAMPLES = (
    "loadgen dataset --random-input-len normal:500:100",
    "loadgen dataset --dataset-name prose --num-prompts 50 --export prompts.jsonl",
    "loadgen dataset fetch sharegpt    # download the published ShareGPT file",
    "loadgen dataset cache --clear     # delete the cached prompts",
)
STDOUT = "-"


def main(argv: list[str]) -> int:
    """Run the command; returns its exit code."""
    name = argv[0] if argv else ""
    if name == "fetch":
        from loadgen.cli.dataset import fetch

        return fetch.main(argv[1:])
    if name == "cache":
        from loadgen.cli.dataset import cache

        return cache.main(argv[1:])
    given = _parsed(argv)
    with flags_as_written(given):
        path = given.pop("export", None)
        from loadgen.workload import endpoints

        return show(endpoints.checked(run_settings.settings(given)), path)


def show(settings: "RunSettings", path: str | None = None) -> int:
    """Show the prompts of a run; returns the exit code.

    Args:
        settings: The checked settings of the run.
        path: The file to export the prompts to, "-" for stdout; None: nowhere.
    """
    from loadgen.workload.datasets.prompt_count import with_known_count

    unnamed = settings.tokenizer is None and settings.model is None
    if unnamed:
        settings = settings.replace(tokenizer=_simulators_tokenizer())
    settings = with_known_count(settings)
    if settings.json and path == STDOUT:
        raise BadInput("--export", "stdout is taken by --json", "name a file")
    _show(settings, path)
    if unnamed and not settings.quiet:
        print(
            "loadgen dataset: tokens are counted with the simulator's tokenizer; give --tokenizer for another",
            file=sys.stderr,
        )
    return exit_codes.DONE


def _simulators_tokenizer() -> str:
    """Return the path of the simulator's tokenizer: without a server named, `loadgen run` measures the simulator."""
    from loadgen.util.packages import find

    simulator = find("engines", "sim")
    return str(find("launchers", "local").shown(simulator, simulator.default_model, {}, ()).tokenizer)


def parser(tool: str | None = None) -> TopicParser:
    """Return a parser for --export, the flags that choose prompts, and those of the tool of --compat."""
    text = "Show the prompts of a `loadgen run` with the same flags. No server is needed."
    flag_parser = TopicParser("loadgen dataset", text, main_flags=MAIN_FLAGS, examples=EXAMPLES)
    flag_parser.add_argument(
        "--export",
        metavar="FILE.jsonl",
        help="also write the prompts as JSON lines; --dataset-name jsonl sends them; -: to stdout, all else to stderr",
    )
    flags.add_settings(flag_parser, tool, FIELDS)
    return flag_parser


def _parsed(argv: list[str]) -> dict[str, Any]:
    try:
        return flags.run_settings(argv, parser)
    except BadInput as error:
        if error.problem != UNKNOWN:
            raise
        if not error.field.startswith("-"):
            raise BadInput(error.field, UNKNOWN, "write fetch, cache, or a flag") from None
        if error.field in map(flag, flags.NAMES) or error.field in ("--rate", "--class", "--config"):
            raise BadInput(error.field, "applies only to `loadgen run`", "leave it out: nothing is sent here") from None
        raise


def _show(settings: "RunSettings", path: str | None) -> None:
    from loadgen.cli.dataset.overview import render

    terminal_text.log_to_stderr(settings.log_level)
    overview = _overview(settings, path)
    human = sys.stderr if settings.json or path == STDOUT else sys.stdout
    colour = has_colours(human)
    print(render(overview, colour=colour), end="", file=human)
    if path not in (None, STDOUT):
        print(f"\nSaved: {path}; to send it: --dataset-name jsonl --dataset-path {path}", file=human)
    if settings.json:
        from loadgen.report import to_json

        print(to_json(overview.to_dict()))


def _overview(settings: "RunSettings", path: str | None) -> "Overview":
    from loadgen.runner.prompt_source import PromptSource
    from loadgen.workload.arrivals import DEFAULT_COUNT
    from loadgen.workload.datasets.overview import Overview
    from loadgen.workload.datasets.prompt_rows import export_rows
    from loadgen.workload.target import Target

    target = Target.from_settings(settings, settings.model or "")

    with ProgressLine(lambda done, s: preparing_text(done, count, s), quiet=settings.quiet) as progress:
        source = PromptSource.named(
            settings, target, settings.requests_of(settings.num_prompts or DEFAULT_COUNT), asks=False
        )
        count = source.count
        prompts = _askable(source.prompts, target)
        with _destination(path) as file:
            overview = Overview.of(export_rows(prompts, file) if file else prompts, source.origin, progress)
            if overview.count < count:
                problem = f"{count} prompts are requested, and the data set has only {overview.count}"
                raise BadInput("--num-prompts", problem, f"give at most {overview.count}")
    return overview


def _askable(prompts: "Iterator[Prompt]", target: "Target") -> "Iterator[Prompt]":
    """Yield the prompts; raise BadInput for chats that the endpoint cannot take."""
    for prompt in prompts:
        if prompt.messages and not target.chat:
            target.body(prompt)  # raises the error
        yield prompt


@contextlib.contextmanager
def _destination(path: str | None) -> Iterator[BinaryIO | None]:
    """Yield the stream for --export, or None; a file is replaced only once it is complete."""
    if path is None or path == STDOUT:
        yield None if path is None else sys.stdout.buffer
        return
    from loadgen.util import files
    from loadgen.util.files import atomic_file

    try:
        with atomic_file(Path(os.path.expanduser(path)), files.private_opener) as file:
            yield file
    except OSError as error:
        raise BadInput("--export", f"{path} cannot be written ({error.strerror})", "choose another path") from error
