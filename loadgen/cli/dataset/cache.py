"""`loadgen dataset cache`: show or delete the cached prompts."""

import time

from loadgen.cli import exit_codes
from loadgen.errors import BadInput
from loadgen.util.argument_parser import OneLineParser
from loadgen.util.terminal_text import printable


def main(argv: list[str]) -> int:
    """Run the command; returns its exit code."""
    parser = OneLineParser(
        "loadgen dataset cache",
        description="Show the prompts that are cached on this machine, or delete them.",
    )
    parser.add_argument("--clear", action="store_true", help="delete all of them; the next run makes its prompts again")
    arguments = parser.parse_args(argv)
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
    if entries:
        print(f"{'data set':<20}{'prompts':>12}{'size':>12}{'last used':>14}  file")
    now_s = time.time()
    for entry in entries:
        row = f"{entry.dataset:<20}{entry.prompts:>12,}{_size(entry.bytes):>12}{_ago(now_s - entry.used_s):>14}"
        print(printable(f"{row}  {entry.path.name[:12]}…"))
    return exit_codes.DONE


def _size(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 1e5 else f"{count / 1e3:.1f} kB"


def _ago(seconds: float) -> str:
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.0f} {unit} ago"
    return f"{max(0.0, seconds):.0f} s ago"
