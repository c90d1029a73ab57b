"""ShellCommand: a command of a script, and what of it bash reads otherwise than it looks."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from loadgen.engines.kinds.flag_syntax import is_flag

ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
# A JSON object outside of quotes: bash takes its quotes, and splits it where it has a comma.
BARE_JSON = re.compile(r"(?<![^\s=])\{(?=[^\s}]*\")\S*\}(?!\S)")
# An array, and where its words are put.
ARRAY = re.compile(r"(?m)^[ \t]*(\w+)\+?=\(((?:[^)\"']|\"[^\"]*\"|'[^']*')*)\)[ \t]*$")
COMMENT = re.compile(r"(?m)(?:^|(?<=\s))#.*$")
EXPANSION = re.compile(r"\"?\$\{(\w+)\[[@*]\]\}\"?")
_PREFIXES = {"docker", "podman", "sudo", "nohup", "env", "numactl", "exec", "time"}


@dataclass(frozen=True, slots=True)
class Flaw:
    """What bash reads otherwise than it looks.

    Attributes:
        at: How far into the page it stands, in characters.
        text: The text that is misread.
        why: What bash makes of it.
    """

    at: int
    text: str
    why: str


@dataclass(frozen=True, slots=True)
class ShellCommand:
    """One command, as its author meant it.

    Attributes:
        words: Its words without variables before them; words that bash loses are among them.
        env: Variables of the environment: those before it, and those that the script exported above
            it.
        text: As printed, on one line.
        at: How far into the page it begins, in characters.
        flaws: What of it bash reads otherwise.
    """

    words: tuple[str, ...]
    env: dict[str, str]
    text: str
    at: int
    flaws: tuple[Flaw, ...] = ()

    @property
    def wrapped(self) -> bool:
        """Whether its program starts another one, which its words name."""
        return bool(self.words) and self.words[0] in _PREFIXES


def shell_commands(text: str, at: int) -> Iterator[ShellCommand]:
    """Yield the commands of a script; variables that it exports and no command follows are a
    command without words.

    Args:
        text: The script; lines may have been joined into one, as on a page that was copied from a
            browser.
        at: How far into the page it begins, in characters.
    """
    arrays = {
        array[1]: " ".join(COMMENT.sub("", array[2]).split()) for array in ARRAY.finditer(text)
    }
    text = ARRAY.sub(lambda array: re.sub(r"[^\n]", " ", array[0]), text)
    exported: dict[str, str] = {}
    pending: tuple[str, int] | None = None  # of an export that no command has followed
    for line in _whole_commands(text):
        whole = EXPANSION.sub(lambda match: arrays.get(match[1], match[0]), line.text)
        quoted = BARE_JSON.sub(lambda match: shlex.quote(match[0]), whole)
        try:
            parts = shlex.split(quoted, comments=True)
        except ValueError:  # a quote that is never closed
            parts = whole.split()
        env, words = _variables(parts)
        start = at + line.at
        printed = " ".join(line.text.split())
        if words[:1] == ["export"]:
            exported |= _variables(words[1:])[0]
            pending = pending or (printed, start)
            continue
        if not words:
            exported |= env
            pending = pending or ((printed, start) if env else None)
            continue
        flaws = tuple(
            Flaw(at + flaw.at, flaw.text, flaw.why) for flaw in [*line.flaws, *_json(line)]
        )
        yield ShellCommand(tuple(words), {**exported, **env}, printed, start, flaws)
        pending = None
    if pending is not None:
        yield ShellCommand((), exported, pending[0], pending[1])


@dataclass(frozen=True, slots=True)
class _Line:
    """Lines that belong together, where they begin, and what bash reads otherwise."""

    text: str
    at: int
    flaws: tuple[Flaw, ...] = ()


def _whole_commands(text: str) -> Iterator[_Line]:
    """Join a command with the lines that its author meant to belong to it."""
    # All lines of the script may stand on one: a backslash that ends no line is one that did.
    is_run_on = "\n" not in text.strip() and "\\ " in text
    lines = [_Line(text.replace("\\ ", "  "), 0)] if is_run_on else list(_bash_lines(text))
    meant: list[_Line] = []
    for line in lines:
        stripped = line.text.strip()
        if not stripped or stripped.startswith("#"):
            continue
        if stripped.startswith("-") and meant:
            before = meant[-1]
            flags_alone = meant[-1].text.lstrip().startswith("-")
            why = (
                "the line above does not end in a backslash, so the command ends there and "
                "these words never reach it"
            )
            lost = () if flags_alone else (Flaw(line.at + _indent(line.text), stripped, why),)
            meant[-1] = _Line(f"{before.text} {stripped}", before.at, (*before.flaws, *lost))
        else:
            meant.append(_Line(line.text.lstrip(), line.at + _indent(line.text)))
    yield from meant


def _bash_lines(text: str) -> Iterator[_Line]:
    """Yield lines as bash joins them: by a backslash that is the last character."""
    joined = ""
    begin = 0
    at = 0
    for line in re.sub(r"(?m)^([ \t]*)[$>] (?=\S)", r"\1  ", text).split(
        "\n"
    ):  # a prompt is no part of it
        joined += line
        if line.endswith("\\") and not line.endswith("\\\\"):
            joined = f"{joined[:-1]} "
        else:
            yield _Line(re.sub(r"\\[ \t]+$", "", joined), begin)
            joined = ""
            begin = at + len(line) + 1
        at += len(line) + 1
    if joined:
        yield _Line(joined, begin)


def _json(line: _Line) -> Iterator[Flaw]:
    """Yield JSON without quotes around it, but not in a list of flags without a program."""
    if line.text.startswith("-"):
        return
    for match in BARE_JSON.finditer(line.text):
        bare = match[0].replace('"', "").replace("'", "")
        words = bare[1:-1].split(",") if "," in bare else [bare]
        many = f"splits it into {len(words)} words" if len(words) > 1 else "takes its quotes"
        yield Flaw(
            line.at + match.start(),
            match[0],
            f"bash {many}, `{' '.join(words)}`: JSON needs quotes around it",
        )


def _variables(words: list[str]) -> tuple[dict[str, str], list[str]]:
    env: dict[str, str] = {}
    for number, word in enumerate(words):
        if not ASSIGNMENT.match(word):
            return env, words[number:]
        name, _, value = word.partition("=")
        env[name] = value
    return env, []


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())


def flags_of(words: tuple[str, ...]) -> tuple[dict[str, str], list[str]]:
    """Return the values of flags by their names without dashes, and the other words."""
    flags: dict[str, str] = {}
    rest: list[str] = []
    name = ""
    for word in words:
        if is_flag(word):
            name, _, value = word.lstrip("-").partition("=")
            name = name.replace("_", "-")
            flags[name] = value
            name = "" if value else name
        elif name:
            flags[name] = word
            name = ""
        else:
            rest.append(word)
    return flags, rest
