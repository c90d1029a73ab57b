"""`loadgen dataset`: show or export the prompts of a run, fetch a published file, show the
prompt cache.
"""

import contextlib
import dataclasses
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from loadgen.cli import exit_codes, flags, run_settings
from loadgen.cli.compat.tool_flags import places
from loadgen.cli.live.progress_line import ProgressLine, preparing_text, time_left
from loadgen.cli.topic_parser import TopicParser
from loadgen.config.data import TRACE, DataSettings
from loadgen.config.option import FIRST, flag
from loadgen.errors import BadInput, setting, written_as
from loadgen.util import files, terminal_text
from loadgen.util.argument_parser import UNKNOWN, Advice, OneLineParser
from loadgen.util.files import atomic_file
from loadgen.util.packages import find
from loadgen.util.terminal_text import Screen, has_colours
from loadgen.workload import endpoints

if TYPE_CHECKING:
    from loadgen.config.settings import RunSettings
    from loadgen.workload.datasets.overview import Overview
    from loadgen.workload.prompt import Prompt
    from loadgen.workload.target import Target

# The settings of `loadgen run` that apply here, beside those of the data set.
AGES = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))  # units of time, the longest first
OTHER_FIELDS = (
    *("backend", "endpoint", "model", "tokenizer", "extra_body"),
    *("num_prompts", "seed", "seed_arrivals", "seed_prompts", "seed_order"),
    *("json", "quiet", "log_level"),
)
FIELDS = frozenset((*(field.name for field in dataclasses.fields(DataSettings)), *OTHER_FIELDS))
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
        return fetch(argv[1:])
    if name == "cache":
        return cache(argv[1:])
    flag_values = flags.run_settings(argv, parser)
    with written_as(places(flag_values)):
        path = flag_values.pop("export", None)
        log, private = flag_values.pop("from_log", None), flag_values.pop("private", False)
        if log is not None:
            from loadgen.cli.commands import dataset_log

            flag_values |= {"dataset_name": TRACE, "dataset_path": log}
            as_log = written_as({setting.dataset_path: ("--from-log",)})
            with as_log, _destination(path) as file:
                settings = endpoints.checked(run_settings.settings(flag_values))
                return dataset_log.convert(settings, path, file, private=private)
        if private:
            raise BadInput("--private", "has no effect without --from-log", "leave it out")
        return show(endpoints.checked(run_settings.settings(flag_values)), path)


def show(settings: "RunSettings", path: str | None = None) -> int:
    """Show the prompts of a run; returns the exit code.

    Args:
        settings: The checked settings of the run.
        path: The file to export the prompts to, "-" for stdout; None: nowhere.
    """
    from loadgen.workload.datasets.prompt_count import with_known_count

    unnamed = settings.tokenizer is None and settings.model is None
    if unnamed:
        # Without a server named, `loadgen run` measures the simulator.
        simulator = find("engines", "sim")
        shown = find("launchers", "local").shown(simulator, simulator.default_model, {}, ())
        settings = settings.replace(tokenizer=str(shown.tokenizer))
    settings = with_known_count(settings)
    if settings.json and path == STDOUT:
        raise BadInput("--export", "stdout is taken by --json", "name a file")
    _show(settings, path)
    if unnamed and not settings.quiet:
        print(
            "loadgen dataset: tokens are counted with the simulator's tokenizer; give --tokenizer "
            "for another",
            file=sys.stderr,
        )
    return exit_codes.DONE


def fetch(argv: list[str]) -> int:
    """Download a published data file, and resume an interrupted download; returns the exit code."""
    parser = OneLineParser(
        "loadgen dataset fetch",
        description="Download a published data file from the Hugging Face hub, or from the mirror "
        "in HF_ENDPOINT. An interrupted download is resumed; a complete file is not downloaded "
        "again.",
    )
    parser.add_argument(
        "name",
        choices=["sharegpt"],
        help="the data set: the ShareGPT file that `vllm bench serve` uses, 673 MB",
    )
    parser.add_argument(
        "--to", metavar="FOLDER", default=".", help="the folder to save it in (the current folder)"
    )
    parser.add_argument("--quiet", action="store_true", help="no progress")
    arguments = parser.parse_args(argv)
    from loadgen.workload.files import download

    hub = os.environ.get("HF_ENDPOINT") or download.HUB
    folder = Path(os.path.expanduser(arguments.to))
    try:
        with _Download(arguments.quiet) as progress:
            file = download.fetch(download.SHAREGPT, folder, hub, progress.show)
    except KeyboardInterrupt:
        print(f"loadgen dataset: interrupted; {download.AGAIN}", file=sys.stderr)
        return exit_codes.INTERRUPTED
    print(
        f"{file.path}: {file.path.stat().st_size:,} bytes"
        + ("" if file.sha256 else ", already complete")
    )
    if file.sha256:
        print(f"SHA-256 {file.sha256}")
    print(f"to send it: --dataset-name sharegpt --dataset-path {file.path}")
    return exit_codes.DONE


def cache(argv: list[str]) -> int:
    """Show or delete the cached prompts; returns the exit code."""
    parser = OneLineParser(
        "loadgen dataset cache",
        description="Show the prompts that are cached on this machine, or delete them.",
    )
    parser.add_argument(
        "--clear",
        action="store_true",
        help="delete all of them; the next run makes its prompts again",
    )
    arguments = parser.parse_args(argv)
    from loadgen.document import Table, terminal_writer
    from loadgen.document.terminal_writer import width
    from loadgen.workload.datasets import prompt_cache

    entries = prompt_cache.entries()
    size = _size(sum(entry.bytes for entry in entries))
    if arguments.clear:
        try:
            prompt_cache.clear()
        except OSError as error:
            raise BadInput(
                "--clear", f"{prompt_cache.folder()}: {error.strerror}", "delete the folder by hand"
            ) from error
        print(f"deleted {len(entries)} entries, {size}, from {prompt_cache.folder()}")
        return exit_codes.DONE
    print(f"{len(entries)} entries, {size}, in {prompt_cache.folder()}")
    rows = []
    now_s = time.time()
    for entry in entries:
        idle_s = max(0.0, now_s - entry.used_s)
        unit, length = next(pair for pair in AGES if idle_s >= pair[1] or pair[0] == "s")
        used = f"{idle_s / length:.0f} {unit} ago"
        name = f"{entry.path.name[:12]}…"
        rows.append((entry.dataset, f"{entry.prompts:,}", _size(entry.bytes), used, name))
    if rows:
        head = ("data set", "prompts", "size", "last used", "file")
        table = Table.of(head, rows, text_columns=1, remarks=True)
        print(terminal_writer.text((table,), width(Screen.of(sys.stdout))), end="")
    return exit_codes.DONE


def parser(tool: str | None = None) -> TopicParser:
    """Return a parser for --export, the flags that choose prompts, and those of the tool of
    --compat.
    """
    text = "Show the prompts of a `loadgen run` with the same flags. No server is needed."
    flag_parser = TopicParser("loadgen dataset", "", text, examples=EXAMPLES)
    flag_parser.tiers["export"] = FIRST
    flag_parser.add_argument(
        "--export",
        metavar="FILE.jsonl",
        help="also write the prompts as JSON lines; --dataset-name jsonl sends them; -: to "
        "stdout, all else to stderr",
    )
    flag_parser.add_argument(
        "--from-log",
        metavar="LOG",
        help="write the requests in the log of a gateway, a JSON object a line, to --export; "
        "--dataset-name trace sends them at their times",
    )
    flag_parser.add_argument(
        "--private",
        action="store_true",
        help="with --from-log: replace all texts by random words, as long to the token, that begin "
        "alike where the originals do",
    )
    flags.add_settings(flag_parser, tool, FIELDS)
    flag_parser.advise = _advice
    return flag_parser


def _advice(word: str) -> Advice:
    if not word.startswith("-"):
        return UNKNOWN, "write fetch, cache, or a flag"
    if word in map(flag, flags.NAMES) or word in ("--rate", "--class", "--config"):
        return "applies only to `loadgen run`", "leave it out: nothing is sent here"
    return None


def _show(settings: "RunSettings", path: str | None) -> None:
    from loadgen.cli.commands.dataset_overview import render

    terminal_text.log_to_stderr(settings.log_level)
    overview = _overview(settings, path)
    human = sys.stderr if settings.json or path == STDOUT else sys.stdout
    colour = has_colours(human)
    print(render(overview, colour=colour), end="", file=human)
    if path not in (None, STDOUT):
        print(
            f"\nSaved: {path}; to send it: --dataset-name jsonl --dataset-path {path}", file=human
        )
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

    with ProgressLine(
        lambda done, s: preparing_text(done, count, s), quiet=settings.quiet
    ) as progress:
        source = PromptSource.named(
            settings,
            target,
            settings.requests_of(settings.num_prompts or DEFAULT_COUNT),
            asks=False,
        )
        count = source.count
        prompts = _askable(source.prompts, target)
        with _destination(path) as file:
            overview = Overview.of(
                export_rows(prompts, file) if file else prompts, source.origin, progress
            )
            if overview.count < count:
                problem = (
                    f"{count} prompts are requested, and the data set has only {overview.count}"
                )
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
    try:
        with atomic_file(Path(os.path.expanduser(path)), files.private_opener) as file:
            yield file
    except OSError as error:
        raise BadInput(
            "--export", f"{path} cannot be written ({error.strerror})", "choose another path"
        ) from error


class _Download(ProgressLine):
    """The progress of a download: bytes, rate, and time left."""

    def __init__(self, quiet: bool) -> None:
        super().__init__(self._text_of, quiet=quiet)
        self._before: int | None = None  # bytes of an earlier attempt
        self._total = 0

    def show(self, done: int, total: int) -> None:
        self._before = done if self._before is None else min(self._before, done)
        self._total = total
        self(done)

    def _text_of(self, done: int, elapsed_s: float) -> str:
        before = self._before or 0
        rest = time_left(done - before, self._total - before, elapsed_s)
        rate = f"{(done - before) / elapsed_s / 1e6:.1f} MB/s{rest}"
        return f"fetching: {done / 1e6:.1f} of {self._total / 1e6:.1f} MB, {rate}"


def _size(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 1e5 else f"{count / 1e3:.1f} kB"
