"""Tool: how a load generator is told what to do, and where its figures are: a file of YAML."""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from loadgen.errors import BadInput
from loadgen.lab.judge.case import Load
from loadgen.lab.judge.truth import SENT, TOLERANCES

FOLDER = Path(__file__).with_name("tools")
CHAT, COMPLETIONS = "chat", "completions"
CONSOLE = "console"
SEED = 42
PLACEHOLDER = r"\{(\w+)\}"
FIGURES = tuple(name for name in TOLERANCES if not name.startswith(SENT))


class Place(msgspec.Struct, forbid_unknown_fields=True):
    """Where a figure or a remark stands: in a JSON file, or in what was printed.

    Attributes:
        path: Keys and indices from the root of the JSON; an object of fields picks the items of a
            list that have these; `*` takes all items.
        pattern: Instead: a regular expression with one group.
        file: A name pattern within the folder of the run; empty: the tool's `result`; `console`:
            what it printed.
        times: What the number is multiplied with, for another unit.
        by: A figure above it that it is multiplied with, for a mean that is to be a sum.
    """

    path: list[str | int | dict[str, Any]] = []
    pattern: str = ""
    file: str = ""
    times: float = 1.0
    by: str = ""


class Tool(msgspec.Struct, forbid_unknown_fields=True):
    """A load generator.

    Attributes:
        name: What the matrix calls it.
        begins: Consecutive words of its command line by which it is known.
        flags: The words behind those. `{url}`, `{port}`, `{model}`, `{tokenizer}`, `{folder}`,
            `{count}`, `{input_tokens}`, `{output_tokens}` and `{seed}` are filled in; `{path}` and
            `{backend}` are those of the API, the latter by vLLM's name.
        open: More words for a load at `{rate}` requests per second; empty: it has no such load,
            and is not asked for it. The same holds for the next two.
        at_once: More words for all requests at once.
        closed: More words for at most `{streams}` in flight.
        is_poisson: Whether the arrivals of its open loop are Poisson's.
        api: chat or completions: which API it calls.
        env: Variables of its process; an empty value takes one away.
        files: Files that it needs in `{folder}`, as JSON, filled in likewise.
        before: Requests that it sends before those that it measures.
        result: The file with its figures.
        figures: Where each figure stands; one that it does not print is left out.
        says: Where it says that something was off.
        machine: A regular expression of remarks on the machine alone: they count in no case but
            those of time.
        notes: Definitions of its own that the places of its figures allow for.
    """

    name: str
    begins: list[str]
    flags: list[str | int]
    figures: dict[str, Place]
    open: list[str] = []
    at_once: list[str] = []
    closed: list[str] = []
    is_poisson: bool = False
    api: str = CHAT
    env: dict[str, str] = {}
    files: dict[str, Any] = {}
    before: int = 0
    result: str = CONSOLE
    says: list[Place] = []
    machine: str = ""
    notes: str = ""


@dataclass(frozen=True, slots=True)
class Task:
    """One run of a tool.

    Attributes:
        url: Of the server, without a path.
        model: Its name in requests.
        tokenizer: A folder in the form of Hugging Face.
        folder: Empty, for what the tool writes.
        load: What it is to send.
        api: chat or completions, for tools that have both.
    """

    url: str
    model: str
    tokenizer: Path
    folder: Path
    load: Load
    api: str = CHAT

    def values(self) -> dict[str, object]:
        """Return what the placeholders of a tool's words stand for."""
        load = self.load
        finite = math.isfinite(load.rate)
        rate = int(load.rate) if finite and load.rate == int(load.rate) else load.rate
        return {
            "url": self.url,
            "port": int(self.url.rpartition(":")[2]),
            "model": self.model,
            "tokenizer": self.tokenizer,
            "folder": self.folder,
            "count": load.count,
            "rate": rate,
            "duration_s": max(1, round(load.count / load.rate)) if finite else 0,
            "streams": load.streams or load.count,
            "input_tokens": load.input_tokens,
            "output_tokens": load.output_tokens,
            "seed": SEED,
            "path": "/v1/chat/completions" if self.api == CHAT else "/v1/completions",
            "backend": "openai-chat" if self.api == CHAT else "openai",
        }


@dataclass(frozen=True, slots=True)
class Printed:
    """What a tool printed.

    Attributes:
        figures: Times in ms, rates per second.
        says: Its remarks that something was off.
    """

    figures: Mapping[str, float] = field(default_factory=dict)
    says: tuple[str, ...] = ()


def load_tool(path: Path) -> Tool:
    """Read a tool's file.

    Raises:
        BadInput: It cannot be read, or a field is wrong.
    """
    import yaml

    try:
        tool = msgspec.convert(yaml.safe_load(path.read_text()), Tool)
    except OSError as error:
        problem = f"{path} cannot be read ({error.strerror})"
        raise BadInput("--tool", problem, "name the file that describes the tool") from error
    except (ValueError, yaml.YAMLError) as error:
        problem = f"{path}: {' '.join(str(error).split())}"
        raise BadInput("--tool", problem, "docs/judge.md has an example") from error
    _check_placeholders(path, tool)
    _check_patterns(path, tool)
    _check_figures(path, tool)
    for place in (Place(file=tool.result), *tool.figures.values(), *tool.says):
        if place.file.startswith(("/", "{")):
            remedy = "name it without the folder, which is {folder}"
            raise BadInput("--tool", f"{path}: {place.file!r} is a path", remedy)
    if tool.api not in (CHAT, COMPLETIONS):
        remedy = f"it is {CHAT} or {COMPLETIONS}"
        raise BadInput("--tool", f"{path}: unknown api {tool.api!r}", remedy)
    return tool


def _check_figures(path: Path, tool: Tool) -> None:
    known = f"figures are {', '.join(FIGURES)}"
    if not tool.figures:
        raise BadInput("--tool", f"{path}: no figures", known)
    earlier = set[str]()
    for name, place in tool.figures.items():
        if name not in FIGURES:
            raise BadInput("--tool", f"{path}: unknown figure {name!r}", known)
        if place.by and place.by not in earlier:
            remedy = "name a figure that stands above it"
            raise BadInput("--tool", f"{path}: {name} is multiplied by {place.by!r}", remedy)
        earlier.add(name)
    for name, place in (*tool.figures.items(), *(("says", place) for place in tool.says)):
        if bool(place.path) == bool(place.pattern):
            remedy = "give a path in JSON, or a pattern of text"
            raise BadInput("--tool", f"{path}: {name} has no place, or two", remedy)


def _check_placeholders(path: Path, tool: Tool) -> None:
    known = Task("http://127.0.0.1:1", "", Path(), Path(), Load()).values()
    words = [*tool.flags, *tool.open, *tool.at_once, *tool.closed, json.dumps(tool.files)]
    named = {name for word in words for name in re.findall(PLACEHOLDER, str(word))}
    if wrong := named - known.keys():
        remedy = f"known are {', '.join(f'{{{name}}}' for name in known)}"
        raise BadInput("--tool", f"{path}: unknown placeholder {{{min(wrong)}}}", remedy)


def _check_patterns(path: Path, tool: Tool) -> None:
    for pattern in (tool.machine, *(each.pattern for each in (*tool.figures.values(), *tool.says))):
        try:
            re.compile(pattern)
        except re.error as error:
            problem = f"{path}: {pattern!r} is no regular expression ({error})"
            raise BadInput("--tool", problem, "correct it, in Python's syntax") from error
        if pattern and pattern != tool.machine and (groups := re.compile(pattern).groups) != 1:
            problem = f"{path}: {pattern!r} has {groups} groups"
            raise BadInput("--tool", problem, "put what is to be read, alone, in ( )")


def built_in() -> dict[str, Tool]:
    """Return the tools that come with loadgen, by the names of their files."""
    return {path.stem: load_tool(path) for path in sorted(FOLDER.glob("*.yaml"))}


def recognized(command: Sequence[str], tools: Mapping[str, Tool]) -> Tool:
    """Return the tool that a command line starts.

    Raises:
        BadInput: None of these.
    """
    words = [Path(word).name for word in command]
    for tool in tools.values():
        size = len(tool.begins)
        if any(words[i : i + size] == tool.begins for i in range(len(words))):
            return tool
    begins = ", ".join(" ".join(tool.begins) for tool in tools.values())
    raise BadInput(
        "COMMAND",
        f"{' '.join(words[:3])!r} begins like no known tool",
        f"known are {begins}; describe another one with --tool FILE.yaml (docs/judge.md)",
    )


def load_words(tool: Tool, load: Load) -> list[str]:
    """Return the words that ask for this kind of load; empty: the tool has none."""
    words: list[str] = getattr(tool, load_name(load))
    return words


def load_name(load: Load) -> str:
    """Return the field of a tool with the words for this kind of load."""
    if load.streams:
        return "closed"
    return "open" if math.isfinite(load.rate) else "at_once"


def command_line(tool: Tool, begins: Sequence[str], task: Task) -> list[str]:
    """Return the command line that carries a task out; write the files that it needs.

    Args:
        tool: The tool.
        begins: The words that start it, as the user has them.
        task: What it is to do.
    """
    values = task.values()
    for name, content in tool.files.items():
        (task.folder / name).write_text(json.dumps(_filled(content, values)))
    words = [*tool.flags, *load_words(tool, task.load)]
    return [*begins, *(str(_filled(word, values)) for word in words)]


def read(tool: Tool, folder: Path, console: str) -> Printed:
    """Return what a tool printed and wrote.

    Args:
        tool: The tool.
        folder: Where it wrote.
        console: All that it printed.

    A place that is not there is a figure that is not printed.
    """
    figures: dict[str, float] = {}
    for name, place in tool.figures.items():
        values = list(_values(place, tool, folder, console))
        number = _number(values[0]) if len(values) == 1 else None
        if number is not None and place.by:
            number = number * figures[place.by] if place.by in figures else None
        if number is not None:
            figures[name] = number * place.times
    says = [
        str(value)
        for place in tool.says
        for value in _values(place, tool, folder, console)
        if value not in (None, "")
    ]
    return Printed(figures, tuple(dict.fromkeys(says)))


def _filled(content: Any, values: Mapping[str, object]) -> Any:
    if isinstance(content, dict):
        return {key: _filled(value, values) for key, value in content.items()}
    if isinstance(content, list):
        return [_filled(value, values) for value in content]
    if not isinstance(content, str):
        return content
    name = content[1:-1]
    if content == f"{{{name}}}" and name in values:  # a number stays one
        value = values[name]
        return str(value) if isinstance(value, Path) else value
    return re.sub(PLACEHOLDER, lambda match: str(values.get(match[1], match[0])), content)


def _values(place: Place, tool: Tool, folder: Path, console: str) -> Iterator[object]:
    name = place.file or (CONSOLE if place.pattern else tool.result)
    paths = [] if name == CONSOLE else sorted(folder.glob(name))
    texts = [console] if name == CONSOLE else [path.read_text(errors="replace") for path in paths]
    for text in texts[:1]:
        if place.pattern:
            yield from re.findall(place.pattern, text, re.MULTILINE)
        else:
            yield from _at(_json(text), place.path)


def _json(text: str) -> object:
    """Return the JSON of a file; of JSON lines and of a console the last line that is JSON."""
    for part in (text, *reversed(text.splitlines())):
        try:
            value: object = json.loads(part)
        except ValueError:
            continue
        return value
    return None


def _at(value: object, path: Sequence[str | int | dict[str, Any]]) -> Iterator[object]:
    if not path:
        yield value
        return
    step, *rest = path
    items: list[object] = []
    if isinstance(value, dict) and step in ("*", "keys"):
        items = list(value) if step == "keys" else list(value.values())
    elif isinstance(value, dict) and not isinstance(step, dict):
        items = [value[step]] if step in value else []
    elif isinstance(value, list) and isinstance(step, dict):
        items = [each for each in value if isinstance(each, dict) and step.items() <= each.items()]
    elif isinstance(value, list) and step == "*":
        items = value
    elif isinstance(value, list) and isinstance(step, int):
        items = value[step : step + 1]
    for item in items:
        yield from _at(item, rest)


def _number(value: object) -> float | None:
    try:
        number = float(str(value).replace(",", ""))
    except ValueError:
        return None
    return number if math.isfinite(number) else None
