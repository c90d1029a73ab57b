"""The overview of a data set as text of 80 columns."""

import json
from collections.abc import Iterator

from loadgen.util.arrays import Int64s
from loadgen.util.terminal_text import printable, truncate
from loadgen.workload.datasets.overview import Overview, bins, summary
from loadgen.workload.prompt import UNPLANNED, Prompt

WIDTH, BAR = 80, 40
BOLD, PLAIN = "\x1b[1m", "\x1b[0m"


def render(overview: Overview, *, colour: bool = False) -> str:
    """The whole text; nothing that a prompt or a file says in it moves a terminal.

    Args:
        overview: What is shown.
        colour: Whether headings are bold.
    """
    lines: list[str] = []
    for heading, part in (
        ("Data set", _about(overview)),
        ("Tokens", _tokens(overview)),
        ("Input tokens", _histogram(overview.input_tokens)),
        ("Output tokens", _histogram(overview.output_tokens)),
        ("Samples", _samples(overview)),
        ("SHA-256", _hashes(overview)),
    ):
        lines.append(f"{BOLD}{heading}{PLAIN}" if colour else heading)
        lines += (f"  {printable(line)}".rstrip() for line in part)
        lines.append("")
    return "\n".join(lines[:-1]) + "\n"


def _about(overview: Overview) -> Iterator[str]:
    about = overview.about
    rule = f", rule: {about['rule']}" if about.get("rule") else ""
    yield f"{about.get('name', 'unnamed')}{rule}"
    repeats = overview.distinct < overview.count
    distinct = f"{overview.distinct:,} distinct (prefix caches make the rest cheaper)" if repeats else "all distinct"
    yield f"{overview.count:,} prompts, {distinct}"
    if overview.unplanned:
        yield f"{overview.unplanned:,} of them repeat the server's answers: their length is not known beforehand"
        yield "and not among those below"
    if about.get("rows_left_out"):
        yield f"left out of the trace, for want of tokens asked or answered: {about['rows_left_out']:,}"
    if about.get("file_cut_off"):
        yield f"the file is cut off: only its {about['conversations']:,} whole conversations are used"


def _tokens(overview: Overview) -> Iterator[str]:
    rows = {"input": summary(overview.input_tokens), "output": summary(overview.output_tokens)}
    totals = {"input": "not known" if overview.unplanned else int(overview.input_tokens.sum())}
    totals["output"] = int(overview.output_tokens.sum())
    columns = list(rows["input"])
    yield f"{'':<7}{'total':>12}{'mean':>9}" + "".join(f"{column:>7}" for column in columns[1:])
    for name, row in rows.items():
        cells = "".join(f"{round(row[column]):>7}" for column in columns[1:])
        yield f"{name:<7}{totals[name]:>12}{row['mean']:>9.1f}{cells}"
    yield _server(overview)


def _server(overview: Overview) -> str:
    if overview.server_tokens is None or overview.overhead is None:
        why = (overview.about.get("server_tokens") or {}).get("unknown")
        why = "answers are repeated" if overview.unplanned else why or "the data set does not say"
        return f"input as the server will count it: not known ({why})"
    least, most = overview.overhead
    beside = f" and {least}" if least == most else f" and {least} to {most}"  # the chat template's, for the most part
    own = f"the prompts' own{f'{beside} each' if least or most else ''}"
    return f"input as the server will count it: {int(overview.server_tokens.sum())} ({own})"


def _histogram(lengths: Int64s) -> Iterator[str]:
    found = bins(lengths)
    peak = max(count for *_, count in found)
    digits = len(str(found[-1][1]))
    for low, high, count in found:
        reach = f"{low:>{digits}}" + (f" to {high:>{digits}}" if high > low else "")
        yield f"{reach} {'#' * -(-BAR * count // peak):<{BAR}} {count:>8}"


def _samples(overview: Overview) -> Iterator[str]:
    for prompt in overview.samples:
        length = "not known beforehand how many" if prompt.input_tokens == UNPLANNED else prompt.input_tokens
        yield truncate(f"{prompt.source}: {length} tokens in, {prompt.output_tokens} out", WIDTH - 2)
        for said in _said(prompt):
            yield "  " + truncate(said, WIDTH - 4)


def _said(prompt: Prompt) -> Iterator[str]:
    """The text, or the first and the last message of a chat."""
    if not prompt.messages:
        yield prompt.text
        return
    for message in prompt.messages[:1] + prompt.messages[1:][-1:]:
        content = message.get("content")
        yield f"{message.get('role')}: {content if isinstance(content, str) else json.dumps(content)}"
    if len(prompt.messages) > 2:
        yield f"({len(prompt.messages)} messages)"


def _hashes(overview: Overview) -> Iterator[str]:
    for name, digest in overview.hashes().items():
        yield f"{name:<10}{digest or 'none'}"
