"""A command of another tool, translated: the command of loadgen, and what is not the same."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from loadgen.cli.translate import shell_words
from loadgen.cli.translate.shell_words import number, quoted
from loadgen.config.target import BALANCE

# Fields of a request's body that are flags of loadgen.
BODY_FLAGS = {
    name: f"--{name.replace('_', '-')}"
    for name in (
        *("temperature", "top_p", "top_k", "min_p"),
        *("frequency_penalty", "presence_penalty", "repetition_penalty"),
    )
}
LENGTHS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
CHAT, COMPLETIONS = "openai-chat", "openai"
POOLING = ("openai-embeddings", "vllm-rerank")  # which generate no tokens
# The paths that each of loadgen's APIs has without --endpoint.
PATHS = {
    CHAT: "/v1/chat/completions",
    COMPLETIONS: "/v1/completions",
    "openai-responses": "/v1/responses",
    "openai-embeddings": "/v1/embeddings",
    "vllm-rerank": "/v1/rerank",
}
LONGEST = "10000000"  # tokens of a length without a maximum
FIRST = ("--base-url", "--balance", "--engine", "--model", "--tokenizer", "--backend")


class Translation:
    """What becomes of a command.

    Attributes:
        title: The name of the tool.
        written: The words of the command, flags without their values.
        own: Words with flags of loadgen among those of the tool; None: there may be none.
        environment: The variables that are set in front of the command.
        differs: What is not the same even so, by a name.
        without: Words of the command that have no counterpart, with the reason.
        blocked: Why no command asks for the same load, each in a sentence; empty if one does.
    """

    def __init__(
        self,
        title: str,
        written: Iterable[str] = (),
        environment: Mapping[str, str] | None = None,
        *,
        own_flags: bool = False,
    ) -> None:
        self.title = title
        self.own: list[str] | None = [] if own_flags else None
        self.written = frozenset(word.partition("=")[0] for word in written)
        self.environment = environment or {}
        self.differs: dict[str, str] = {}
        self.without: dict[str, str] = {}
        self.blocked: list[str] = []
        self._flags: dict[str, tuple[str, ...]] = {}
        self._body: dict[str, Any] = {}

    def put(self, flag: str, *values: str) -> None:
        """Give a flag of loadgen these values, in place of those that it had."""
        self._flags[flag] = values

    def drop(self, *flags: str) -> None:
        """Take flags back."""
        for flag in flags:
            self._flags.pop(flag, None)

    def value(self, flag: str) -> str:
        """Return the last value of a flag of loadgen; "" if it has none."""
        return (self._flags.get(flag) or ("",))[-1]

    def __contains__(self, flag: str) -> bool:
        return flag in self._flags

    def differ(self, name: str, how: str) -> None:
        """Say what is not the same."""
        self.differs.setdefault(name, how)

    def leave(self, word: str, why: str) -> None:
        """Say why a word of the command has no counterpart."""
        self.without.setdefault(word, why)

    def block(self, why: str) -> None:
        """Say why no command asks for the same load."""
        if why not in self.blocked:
            self.blocked.append(why)

    @property
    def words(self) -> list[str]:
        """The words behind `loadgen run`."""
        flags = dict(self._flags)
        if self._body:
            flags["--extra-body"] = (_without_marks(json.dumps(self._body)),)
        ordered = sorted(flags.items(), key=lambda item: [*FIRST, item[0]].index(item[0]))
        words = [word for flag, values in ordered for word in _written(flag, values)]
        return words + (self.own or [])

    def text(self) -> str:
        """Return the command and the notes, which are comments of a shell, as lines."""
        lines = [f"loadgen run {' '.join(map(quoted, self.words))}"]
        if self.blocked:
            lines += ["# not the same load, only the nearest:", *_notes(self.blocked)]
        if self.differs:
            lines.append("# differs:")
            lines += _notes(f"{name}: {how}" for name, how in self.differs.items())
        if self.without:
            lines.append("# without a counterpart:")
            lines += _notes(f"{word}: {why}" for word, why in self.without.items())
        return "\n".join(lines)

    # -- what several tools say alike

    def serve(self, urls: Sequence[str], api: str, endpoint: str = "") -> None:
        """Name the server, or several.

        Args:
            urls: As the tool takes them: maybe without http://, or with the path of an API.
            api: The name of loadgen's API.
            endpoint: The path, if the command names one.
        """
        parts = [_base_and_path(url) for url in urls if url]
        if parts:
            self.put("--base-url", *(base for base, _ in parts))
        if len(parts) > 1:
            self.put("--balance", BALANCE)
        path = f"/{endpoint.lstrip('/')}" if endpoint else "".join(path for _, path in parts[:1])
        self.put("--backend", api)
        if path and path != PATHS.get(api):
            self.put("--endpoint", path)

    def body(self, fields: Mapping[str, Any]) -> None:
        """Add fields of every request's body: flags where loadgen has them."""
        for name, value in fields.items():
            if name in BODY_FLAGS:
                self.put(BODY_FLAGS[name], _scalar(value))
            elif name == "ignore_eos":
                self.eos(ignored=_is_true(value))
            elif name not in (*LENGTHS, "stream", "stream_options", "model"):
                self._body[name] = value

    def eos(self, *, ignored: bool) -> None:
        """Say whether answers have their full length."""
        self.drop("--ignore-eos", "--no-ignore-eos")
        self.put("--ignore-eos" if ignored else "--no-ignore-eos")

    def ended_by_eos(self) -> None:
        """Leave answers their length, unless the command asks for the full one."""
        if "--ignore-eos" not in self:
            self.put("--no-ignore-eos")

    def unbounded(self) -> None:
        """Send no maximum of tokens, as a tool whose command asks for no output length."""
        if "--ignore-eos" in self:
            self.block(
                "answers without a maximum of tokens that go on past their end: they end at the "
                "server's limit; give --random-output-len"
            )
        else:
            self.put("--no-max-tokens")

    def save(self, folder: str = "", file: str = "") -> None:
        """Save the result."""
        if folder or file:
            self.put("--save-result")
        if folder:
            self.put("--result-dir", folder)
        if file:
            self.put("--result-filename", file)

    def tail(self) -> None:
        """Say what happens to requests in flight when the time is over."""
        self.differ(
            "tail",
            f"requests in flight when the time is over: loadgen lets them end, {self.title} may "
            "cut them or leave them out",
        )


def length(mean: str, deviation: str = "0", low: str = "", high: str = "") -> str:
    """Write a length: a number, or a normal distribution of it."""
    if not deviation or number(deviation) == 0:
        return whole(mean)
    bounds = [low or "1", high] if high else [low] if low else []
    return ":".join(["normal", whole(mean), whole(deviation), *map(whole, bounds)])


def bounded(result: Translation, mean: str, deviation: str, low: str, high: str) -> str:
    """Write a normal length whose tool moves what is outside the bounds to the bounds: as clipped,
    if these are many.
    """
    text = length(mean, deviation, low, high)
    if not text.startswith("normal:") or not (low or high):
        return text
    middle, spread = number(mean) or 0.0, number(deviation) or 0.0
    ends = [end for end in map(number, (low, high)) if end is not None]
    if any(abs(middle - end) < spread for end in ends):
        parts = map(whole, (mean, deviation, low or "1", high or LONGEST))
        return ":".join(["clipped", *parts])
    result.differ(
        "clipped-not-redrawn",
        f"{result.title} moves a length outside the bounds to the bound, loadgen draws it again; "
        f"clipped{text.removeprefix('normal')} moves it, too",
    )
    return text


def swept(result: Translation, levels: list[str], counts: list[str]) -> None:
    """Ask for a run at each of several concurrencies, with its number of requests.

    Args:
        result: What to add it to.
        levels: The concurrencies.
        counts: The number of requests of each.
    """
    if len(levels) == 1:
        result.put("--max-concurrency", levels[0])
        result.put("--num-prompts", counts[0])
        return
    factors = {_ratio(count, level) for level, count in zip(levels, counts, strict=True)}
    factor = factors.pop() if len(factors) == 1 else 0.5
    sessions = result.value("--dataset-name") == "multi_turn"
    if factor.is_integer() and not sessions:
        result.put("--sweep-max-concurrency", ",".join(levels))
        result.put("--sweep-num-prompts-factor", f"{factor:.0f}")
        return
    result.block(
        f"{len(levels)} runs with numbers of requests of their own: give one command for each; "
        "this is the first"
    )
    result.put("--max-concurrency", levels[0])
    result.put("--num-prompts", counts[0])


def _ratio(count: str, level: str) -> float:
    """Return the requests of each slot; no whole number, if one of them is unknown."""
    requests, slots = number(count), number(level)
    return requests / slots if requests and slots else 0.5


def whole(text: str) -> str:
    """Write a whole number without its fraction: 5000.0 is 5000."""
    return re.sub(r"\.0*$", "", text)


def seconds(milliseconds: str) -> str:
    """Convert a time in ms to one in s; a variable stays one, with a unit."""
    value = number(milliseconds)
    return f"{braced(milliseconds)}ms" if value is None else f"{value / 1000:g}"


def braced(variable: str) -> str:
    """Write a variable so that letters may follow it: ${X} for $X."""
    return re.sub(r"^\$(\w+)$", r"${\1}", variable)


def pairs(text: str) -> dict[str, Any]:
    """Read fields: a JSON object, or NAME:VALUE; variables in it stay as they are."""
    if text.lstrip().startswith("{"):
        fields = loads(text)
        return fields if isinstance(fields, dict) else {}
    name, _, value = text.partition(":")
    return {name: _typed(value)}


def loads(text: str) -> Any:
    """Read JSON in which variables may stand for values; None if it is none."""
    marked = re.sub(r'(?<!["\w])(\$\{[^}]*\}|\$\w+)(?![\w"])', r'"\\u0001\1"', text)
    try:
        return json.loads(marked)
    except ValueError:
        return None


def read_yaml(text: str) -> Any:
    """Read YAML, of which JSON is a part; None if it is none."""
    import yaml  # not before: few commands need it

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return None


def _without_marks(text: str) -> str:
    return re.sub(r'"\\u0001([^"]*)"', r"\1", text)


def _typed(text: str) -> Any:
    if shell_words.has_variable(text):
        return "\1" + text
    try:
        return json.loads(text)
    except ValueError:
        return {"True": True, "False": False}.get(text, text)


def _scalar(value: Any) -> str:
    return value.removeprefix("\1") if isinstance(value, str) else json.dumps(value)


def _is_true(value: Any) -> bool:
    return value is True or str(value).lower() in ("true", "1")


def _written(flag: str, values: tuple[str, ...]) -> list[str]:
    if flag == "--base-url":
        return [word for value in values for word in (flag, value)]
    if flag == "--engine-arg" or (values and values[0].startswith("-")):
        return [f"{flag}={value}" for value in values]
    return [flag, *values]


def _notes(texts: Iterable[str]) -> list[str]:
    return [f"#   {' '.join(text.split())}" for text in texts]


def _base_and_path(url: str) -> tuple[str, str]:
    """Split a URL into that of the server, with http://, and the path of an API, or ""."""
    api = re.search(r"/(?:chat/completions|completions|responses|embeddings|rerank)/?$", url)
    base = url[: api.start()] if api else url.rstrip("/")
    if api and base.startswith("$") and shell_words.is_variable(base):
        return f"${{{base.strip('${}')}%/v1}}", ""
    root = re.sub(r"/v1$", "", base)
    path = f"{base[len(root) :]}{api[0].rstrip('/')}" if api else ""
    if "://" not in root and not shell_words.is_variable(root):
        root = f"http://{root}"
    host = re.match(r"[a-z]+://[^/]+", root)
    if api and host and host.end() < len(root):  # a path before /v1
        path, root = root[host.end() :] + path, host[0]
    return root, path
