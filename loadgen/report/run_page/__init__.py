"""Page: results as one page of HTML that needs no other file; a pure function of them."""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from loadgen.report.html import Block, Document, Heading, Table, writer
from loadgen.report.result import RunResult
from loadgen.report.result.series import Series
from loadgen.report.run_page import run, series
from loadgen.report.series_answer import answer
from loadgen.util.number_format import four_digits, plural

Saved = RunResult | Series


def html(results: Sequence[Saved]) -> str:
    """Write the page of a result, of a series, or of several.

    Args:
        results: At least one.
    """
    return writer.html(document(results))


def document(results: Sequence[Saved]) -> Document:
    """Put the page together; several results have a part each, below a table of them all."""
    if len(results) == 1:
        return Document(_title(results[0]), tuple(_blocks(results[0])))
    blocks: list[Block] = [_table(results)]
    for number, result in enumerate(results, 1):
        blocks.append(Heading(2, f"{number}. {_title(result)}"))
        blocks += [
            replace(block, level=block.level + 1) if isinstance(block, Heading) else block
            for block in _blocks(result)
        ]
    return Document(f"{len(results)} results", tuple(blocks))


def _title(result: Saved) -> str:
    return answer(result) if isinstance(result, Series) else run.title(result)


def _blocks(result: Saved) -> Iterator[Block]:
    return series.blocks(result) if isinstance(result, Series) else run.blocks(result)


def _table(results: Sequence[Saved]) -> Table:
    head = ("", "result", "date", "verdict", "req/s", "tok/s", "mean TTFT (ms)", "mean TPOT (ms)")
    rows = []
    for number, result in enumerate(results, 1):
        if isinstance(result, Series):
            cells = [series.date(result), plural(len(result.points), "run"), *[""] * 4]
        else:
            numbers = result.numbers
            figures = (
                numbers.request_throughput,
                numbers.output_throughput,
                numbers.mean_ttft_ms,
                numbers.mean_tpot_ms,
            )
            cells = [run.date(numbers), result.verdict, *map(four_digits, figures)]
        rows.append((str(number), _title(result), *cells))
    return Table.of(head, rows, text_columns=4)
