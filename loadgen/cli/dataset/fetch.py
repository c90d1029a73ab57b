"""`loadgen dataset fetch`: download a published data file, and resume an interrupted download."""

import os
import sys
from pathlib import Path

from loadgen.cli import exit_codes
from loadgen.cli.live.progress_line import ProgressLine, time_left
from loadgen.util.argument_parser import OneLineParser


def main(argv: list[str]) -> int:
    """Run the command; returns its exit code."""
    parser = OneLineParser(
        "loadgen dataset fetch",
        description="Download a published data file from the Hugging Face hub, or from the mirror in HF_ENDPOINT. "
        "An interrupted download is resumed; a complete file is not downloaded again.",
    )
    parser.add_argument(
        "name", choices=["sharegpt"], help="the data set: the ShareGPT file that `vllm bench serve` uses, 673 MB"
    )
    parser.add_argument("--to", metavar="FOLDER", default=".", help="the folder to save it in (the current folder)")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    arguments = parser.parse_args(argv)
    from loadgen.workload.files import download

    hub = os.environ.get("HF_ENDPOINT") or download.HUB
    folder = Path(os.path.expanduser(arguments.to))
    try:
        with _Download(arguments.quiet) as progress:
            found = download.fetch(download.SHAREGPT, folder, hub, progress.show)
    except KeyboardInterrupt:
        print(f"loadgen dataset: interrupted; {download.AGAIN}", file=sys.stderr)
        return exit_codes.INTERRUPTED
    print(f"{found.path}: {found.path.stat().st_size:,} bytes" + ("" if found.sha256 else ", already complete"))
    if found.sha256:
        print(f"SHA-256 {found.sha256}")
    print(f"to send it: --dataset-name sharegpt --dataset-path {found.path}")
    return exit_codes.DONE


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
