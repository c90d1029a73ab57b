"""`loadgen dataset fetch`: get a published data file, and go on where an earlier attempt was cut off."""

import os
import sys
from pathlib import Path

from loadgen.cli import exit_codes
from loadgen.cli.live.long_task import Gauge, left
from loadgen.util.argument_parser import OneLineParser


def main(argv: list[str]) -> int:
    """Carry out the command; returns its exit code."""
    parser = OneLineParser(
        "loadgen dataset fetch",
        description="Fetch a published data file from the Hugging Face hub, or from the mirror that HF_ENDPOINT names. "
        "What was cut off is gone on with; a file that is there whole is left alone.",
    )
    parser.add_argument("name", choices=["sharegpt"], help="which: the 673 MB that `vllm bench serve` is shown with")
    parser.add_argument("--to", metavar="FOLDER", default=".", help="where to put it (the current folder)")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    arguments = parser.parse_args(argv)
    from loadgen.workload.files import download

    hub = os.environ.get("HF_ENDPOINT") or download.HUB
    folder = Path(os.path.expanduser(arguments.to))
    try:
        with _Coming(arguments.quiet) as coming:
            found = download.fetch(download.SHAREGPT, folder, hub, coming.show)
    except KeyboardInterrupt:
        print(f"loadgen dataset: interrupted; {download.AGAIN}", file=sys.stderr)
        return exit_codes.INTERRUPTED
    print(f"{found.path}: {found.path.stat().st_size:,} bytes" + ("" if found.sha256 else ", there already"))
    if found.sha256:
        print(f"SHA-256 {found.sha256}")
    print(f"send it with --dataset-name sharegpt --dataset-path {found.path}")
    return exit_codes.DONE


class _Coming(Gauge):
    """How much has come, how fast, and how long the rest will take."""

    def __init__(self, quiet: bool) -> None:
        super().__init__(self._told, quiet=quiet)
        self._before: int | None = None  # what an earlier attempt had brought
        self._total = 0

    def show(self, done: int, total: int) -> None:
        """So many bytes of so many are there."""
        self._before = done if self._before is None else min(self._before, done)
        self._total = total
        self(done)

    def _told(self, done: int, elapsed_s: float) -> str:
        before = self._before or 0
        rest = left(done - before, self._total - before, elapsed_s)
        rate = f"{(done - before) / elapsed_s / 1e6:.1f} MB/s{rest}"
        return f"fetching: {done / 1e6:.1f} of {self._total / 1e6:.1f} MB, {rate}"
