"""Announced workload: a load that a page announces, and `ClientCommand`, the command that sends it.

A load is announced in a list, in a profile, or by its command.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from urllib.parse import urlsplit

from loadgen.lab.audit.published import Published
from loadgen.lab.audit.shell import ShellCommand, flags_of


@dataclass(frozen=True, slots=True)
class Client:
    """What a client does unless it is told.

    Attributes:
        port: Where it looks for a server; empty: nowhere.
        draws_below: Whether random lengths are drawn from `--random-range-ratio` (0) times what
            was asked up to that, rather than around it.
        starts_servers: Whether servers were started for it, at any port: it is loadgen's.
    """

    port: str
    draws_below: bool = False
    starts_servers: bool = False


# By the words with which a client is started.
CLIENTS = {
    ("vllm", "bench", "serve"): Client("8000"),
    ("python3", "-m", "sglang.bench_serving"): Client("30000", draws_below=True),
    ("python", "-m", "sglang.bench_serving"): Client("30000", draws_below=True),
    ("python3", "benchmark_serving.py"): Client("8000"),
    ("python", "benchmark_serving.py"): Client("8000"),
    ("guidellm", "benchmark"): Client(""),
    ("loadgen", "run"): Client("8000", starts_servers=True),
}
MAX_LENGTH_ERROR = 0.05  # relative: what mean lengths may be off what was asked, by tokenizers
TEMPLATE_TOKENS = 64  # tokens that a chat template may add to a prompt
_COUNT = r"(\d[\d,]*\.?\d*)\s?([kK]?)"
PROSE = re.compile(
    rf"(?:^|\n)[ \t]*(?:[-*]|\d+\.)?[ \t]*\**(?P<name>[^\n:`|]{{0,60}}?)\**:?\s*{_COUNT} "
    r"(?:random )?"
    rf"input(?: tokens?)?\s*(?:,|\+|/|and)\s*{_COUNT} (?:output|generation)"
)
RUN_ON = re.compile(rf"(?P<name>){_COUNT} input tokens, {_COUNT} output tokens")
KEY = re.compile(r"(?<![\w-])(\w+): ([\w.]+)")


@dataclass(frozen=True, slots=True)
class AnnouncedWorkload:
    """One workload.

    Attributes:
        name: As the page calls it; empty where it is only in a command.
        at: How far into the page it stands, in characters.
        input_tokens: Of each request; None: conversations of many lengths.
        output_tokens: Of each request; None: as the conversations had.
        requests: How many are sent; None: unknown.
        rate: Requests per second that are offered; None: unknown, or all at once.
        cap: The most that may be in flight; None: unknown.
        least: The shortest lengths that are drawn, as a share of `input_tokens` and
            `output_tokens`.
    """

    name: str
    at: int
    input_tokens: int | None = None
    output_tokens: int | None = None
    requests: int | None = None
    rate: float | None = None
    cap: int | None = None
    least: float = 1.0

    def fits(self, result: Published) -> bool:
        """Whether a result can be of this workload, by the lengths of its requests."""
        is_comparable = self.input_tokens is not None and result.per_request() is not None
        return is_comparable and not length_mismatch(
            result, self.input_tokens, self.output_tokens, self.least
        )


def length_mismatch(
    result: Published, input_tokens: int | None, output_tokens: int | None, least: float = 1.0
) -> str:
    """Return which mean lengths of a result are not those of a load: "prompts" or "replies"; empty:
    both may be.

    Args:
        result: The result.
        input_tokens: Of each prompt; None: of many lengths.
        output_tokens: Of each reply, which may end early; None: of many lengths.
        least: The shortest prompt that is drawn, as a share of `input_tokens`.
    """
    lengths = result.per_request()
    longest = 1 + MAX_LENGTH_ERROR
    if lengths is None:
        return ""
    prompt, reply = lengths
    if input_tokens is not None:
        shortest = (1 - MAX_LENGTH_ERROR) * least * input_tokens
        if not shortest <= prompt <= longest * input_tokens + TEMPLATE_TOKENS:
            return "prompts"
    return "replies" if output_tokens is not None and reply > longest * output_tokens else ""


@dataclass(frozen=True, slots=True)
class ClientCommand:
    """One command that sends a load.

    Attributes:
        flags: Their values by name, without dashes before them, with dashes in them.
        text: As printed, on one line.
        at: How far into the page it stands, in characters.
        tool: What it does unless a flag says.
    """

    flags: Mapping[str, str]
    text: str
    at: int
    tool: Client

    @property
    def model(self) -> str:
        """The model's name in its requests; empty where nothing tells."""
        model = self.flags.get("served-model-name") or self.flags.get("model", "")
        return "" if "$" in model else model

    @property
    def port(self) -> str:
        """The port to which it connects; empty where nothing tells."""
        url = self.flags.get("base-url") or self.flags.get("target", "")
        if "$" in url:
            return ""
        return str(urlsplit(url).port or "") if url else self.flags.get("port", self.tool.port)

    @property
    def dataset(self) -> str:
        """The name of its data set."""
        return self.flags.get("dataset-name", "")

    @property
    def least(self) -> float:
        """The shortest random lengths that it draws on average, as a share of what is asked."""
        ratio = self.flags.get("random-range-ratio", "0")
        share = float(ratio) if re.fullmatch(r"\d*\.?\d+", ratio) else 0.0
        return share if self.tool.draws_below else max(0.0, 1 - share)

    def number(self, *names: str) -> int | None:
        """The first of these flags that has a whole number."""
        return next(
            (int(value) for name in names if (value := self.flags.get(name, "")).isdigit()), None
        )


def client_command(line: ShellCommand) -> ClientCommand | None:
    """The load that a command sends; None if it is another command."""
    for client, tool in CLIENTS.items():
        words = line.words
        is_script = len(words) >= len(client) and client[-1].endswith(".py")
        # A script may be named with its folder.
        if words[: len(client)] == client or (
            is_script and words[1].rpartition("/")[2] == client[-1]
        ):
            flags, _ = flags_of(words[len(client) :])
            return ClientCommand(flags, line.text, line.at, tool)
    return None


def workloads(
    text: str, prose: str, clients: list[ClientCommand], title_at: dict[int, str]
) -> Iterator[AnnouncedWorkload]:
    """Every workload that a page announces.

    Args:
        text: The page.
        prose: The page, fences blanked out.
        clients: Its commands that send a load.
        title_at: Titles of its sections by where they begin, in characters.
    """
    for client in clients:
        is_random = client.dataset == "random" or client.number("random-input-len") is not None
        rate = client.flags.get("request-rate", "")
        yield AnnouncedWorkload(
            "",
            client.at,
            client.number("random-input-len", "random-input") if is_random else None,
            client.number("random-output-len", "random-output") if is_random else None,
            client.number("num-prompts", "max-requests"),
            float(rate) if re.fullmatch(r"\d+(\.\d+)?", rate) else None,
            client.number("max-concurrency"),
            client.least,
        )
    seen: set[int] = set()
    for match in chain(PROSE.finditer(prose), RUN_ON.finditer(prose)):
        at = match.start(2)
        if at in seen:
            continue
        seen.add(at)
        lengths = [
            float(match[group].replace(",", "")) * (1000 if match[group + 1] else 1)
            for group in (2, 4)
        ]
        yield AnnouncedWorkload(match["name"].strip(" *-."), at, *map(round, lengths))
    yield from _profiles(text, title_at)


def _profiles(text: str, title_at: dict[int, str]) -> Iterator[AnnouncedWorkload]:
    """A profile as GPUStack writes it, from dataset_name to the next profile."""
    starts = [match.start() for match in re.finditer(r"\bdataset_name:", text)]
    for begin, end in zip(starts, [*starts[1:], len(text)], strict=False):
        keys = dict(KEY.findall(text[begin : min(end, begin + 400)].split("```")[0]))
        if not keys.keys() & {"request_rate", "total_requests"}:
            continue
        above = [title for at, title in title_at.items() if at < begin]
        numbers = {key: int(text) for key, text in keys.items() if text.isdigit()}
        name = above[-1].split(" dataset_name")[0].split("```")[0].strip() if above else ""
        yield AnnouncedWorkload(
            name,
            begin,
            numbers.get("dataset_input_tokens"),
            numbers.get("dataset_output_tokens"),
            numbers.get("total_requests"),
            numbers.get("request_rate"),
        )
