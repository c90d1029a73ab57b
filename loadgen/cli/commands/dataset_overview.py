"""The overview of a data set, as text of 80 columns."""

import json
from collections.abc import Iterable, Iterator, Sequence

from loadgen.document import Table, terminal_writer
from loadgen.util.arrays import Int64s
from loadgen.util.terminal_text import printable, truncate
from loadgen.workload.datasets.overview import Overview, bins, summary
from loadgen.workload.prompt import UNPLANNED

WIDTH, BAR = 80, 40
BOLD, PLAIN = "\x1b[1m", "\x1b[0m"


def render(overview: Overview, *, colour: bool = False) -> str:
    """Render the overview; control characters of prompts and files are escaped.

    Args:
        overview: The overview.
        colour: Print headings in bold.
    """
    lines: list[str] = []
    for heading, part in (
        ("Data set", _about(overview)),
        ("Tokens", _tokens(overview)),
        ("Input tokens", _histogram(overview.input_tokens)),
        ("Output tokens", _histogram(overview.output_tokens)),
        ("Samples", _samples(overview)),
        (
            "SHA-256",
            _table(("", ""), ((name, sha or "none") for name, sha in overview.hashes().items())),
        ),
    ):
        lines.append(f"{BOLD}{heading}{PLAIN}" if colour else heading)
        lines += (f"  {printable(line)}".rstrip() for line in part)
        lines.append("")
    return "\n".join(lines[:-1]) + "\n"


def _table(
    head: Sequence[str], rows: Iterable[Sequence[str]], text_columns: int | None = None
) -> Iterator[str]:
    return terminal_writer.lines((Table.of(head, rows, text_columns),), WIDTH - 2)


def _about(overview: Overview) -> Iterator[str]:
    about = overview.about
    rule = f", rule: {about['rule']}" if about.get("rule") else ""
    yield f"{about.get('name', 'unnamed')}{rule}"
    repeats = overview.distinct < overview.count
    distinct = (
        f"{overview.distinct:,} of them distinct (prefix caches speed up the others)"
        if repeats
        else "all distinct"
    )
    yield f"{overview.count:,} prompts, {distinct}"
    if overview.images:
        yield f"{overview.images:,} images, whose tokens are not counted below"
    if overview.unplanned:
        yield (
            f"{overview.unplanned:,} of them include responses of the server: their lengths are "
            "not known yet,"
        )
        yield "and are not counted below"
    if about.get("replaced"):
        fields = ", ".join(f"{name} of {count:,}" for name, count in about["replaced"].items())
        yield f"the run's own replaces the recorded {fields} requests"
    if about.get("rows_left_out"):
        yield (
            f"{about['rows_left_out']:,} rows of the trace left out: they have no input or no "
            "output tokens"
        )
    if about.get("file_cut_off"):
        yield (
            f"the file is truncated: only its {about['conversations']:,} complete conversations "
            "are used"
        )


def _tokens(overview: Overview) -> Iterator[str]:
    rows = {"input": summary(overview.input_tokens), "output": summary(overview.output_tokens)}
    unknown = "unknown" if overview.unplanned else str(int(overview.input_tokens.sum()))
    totals = {"input": unknown, "output": str(int(overview.output_tokens.sum()))}
    columns = list(rows["input"])[1:]
    cells = (
        (name, totals[name], f"{row['mean']:.1f}", *(str(round(row[at])) for at in columns))
        for name, row in rows.items()
    )
    yield from _table(("", "total", "mean", *columns), cells, text_columns=1)
    if overview.server_tokens is None or overview.added_tokens is None:
        why = (overview.about.get("server_tokens") or {}).get("unknown")
        why = (
            "it depends on the server's responses"
            if overview.unplanned
            else why or "not given by the data set"
        )
        yield f"input as the server will count it: unknown ({why})"
        return
    least, most = overview.added_tokens
    # Mostly those of the chat template.
    more = f" plus {least}" if least == most else f" plus {least} to {most}"
    share = f"the text's{f'{more} per prompt' if least or most else ''}"
    yield f"input as the server will count it: {int(overview.server_tokens.sum())} ({share})"


def _histogram(lengths: Int64s) -> Iterator[str]:
    rows = bins(lengths)
    peak = max(count for *_, count in rows)
    digits = len(str(rows[-1][1]))
    cells = (
        (
            f"{low:>{digits}}" + (f" to {high:>{digits}}" if high > low else ""),
            "#" * -(-BAR * count // peak),
            str(count),
        )
        for low, high, count in rows
    )
    return _table(("", "", ""), cells, text_columns=2)


def _samples(overview: Overview) -> Iterator[str]:
    for prompt in overview.samples:
        length = "unknown" if prompt.input_tokens == UNPLANNED else prompt.input_tokens
        yield truncate(
            f"{prompt.source}: input tokens {length}, output tokens {prompt.output_tokens}",
            WIDTH - 2,
        )
        # Of a chat the first and the last message.
        texts = [
            f"{message.get('role')}: {_content(message.get('content'))}"
            for message in prompt.messages[:1] + prompt.messages[1:][-1:]
        ]
        if len(prompt.messages) > 2:
            texts.append(f"({len(prompt.messages)} messages)")
        for text in texts or [prompt.text]:
            yield "  " + truncate(text, WIDTH - 4)


def _content(content: object) -> str:
    """Return the content of a message as text; of a part that is no text, its type."""
    if not isinstance(content, list):
        return content if isinstance(content, str) else json.dumps(content)
    return " ".join(
        part.get("text") or f"[{part.get('type')}]" for part in content if isinstance(part, dict)
    )
