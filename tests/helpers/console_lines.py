"""The console report as it was before it was wrapped, and without the paths of what was saved."""


def unwrapped(lines: list[str]) -> list[str]:
    """Lines, with those joined that go on: they are indented by four more than the first, and
    are no advice.
    """
    whole: list[str] = []
    indent = 0
    for line in lines:
        own = len(line) - len(line.lstrip())
        if whole and own == indent + 4 and not line.lstrip().startswith("->"):
            whole[-1] += " " + line.lstrip()
        else:
            whole.append(line)
            indent = own
    return whole


def report_of(out: str) -> str:
    """What a run prints, without the paths of its files."""
    return "".join(line for line in out.splitlines(keepends=True) if not line.startswith("Saved: "))


def whole(out: str) -> str:
    """What a run prints, as it was before it was wrapped."""
    return "\n".join(unwrapped(out.splitlines())) + "\n"
