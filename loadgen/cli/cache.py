"""`loadgen dataset cache`: the prompts that are kept from run to run; look at them, or remove them."""

import time

from loadgen.arguments import OneLineParser


def main(argv: list[str]) -> int:
    """Carry out the command; returns its exit code."""
    parser = OneLineParser(
        "loadgen dataset cache",
        description="Show which prompts are kept on this machine from run to run, or remove them.",
        allow_abbrev=False,
    )
    parser.add_argument("--clear", action="store_true", help="remove them all: the next run makes them again")
    arguments = parser.parse_args(argv)
    from loadgen.datasets import cache

    kept = sorted(cache.entries(), key=lambda entry: entry.used, reverse=True)
    total = sum(entry.bytes for entry in kept)
    if arguments.clear:
        cache.clear()
        print(f"removed {len(kept)} entries of {_size(total)} from {cache.folder()}")
        return 0
    print(f"{len(kept)} entries, {_size(total)}, in {cache.folder()}")
    now_s = time.time()
    if kept:
        print(f"{'size':>10}  {'made':>10}  {'last used':>10}  name")
    for entry in kept:
        print(f"{_size(entry.bytes):>10}  {_ago(now_s - entry.made):>10}  {_ago(now_s - entry.used):>10}  {entry.name}")
    return 0


def _size(count: int) -> str:
    return f"{count / 1e6:.1f} MB"


def _ago(seconds: float) -> str:
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.0f} {unit} ago"
    return f"{max(0.0, seconds):.0f} s ago"
