"""Page: results as one page of HTML that needs no other file; a pure function of them."""

from collections.abc import Sequence

from msgspec.structs import replace

from loadgen.document import Block, Document, Heading, Table, page_writer
from loadgen.report.result import RunResult
from loadgen.report.result.series import Series
from loadgen.report.run_page import run, series
from loadgen.util.number_format import four_digits, plural

Saved = RunResult | Series


def html(results: Sequence[Saved]) -> str:
    """Write the page of a result, of a series, or of several.

    Args:
        results: At least one.
    """
    return page_writer.html(document(results))


def document(results: Sequence[Saved]) -> Document:
    """Put the page together; several results have a part each, below a table of them all."""
    pages = [_page(result) for result in results]
    if len(pages) == 1:
        return pages[0]
    blocks: list[Block] = [_table(results, [page.title for page in pages])]
    for number, page in enumerate(pages, 1):
        blocks += (Heading(2, f"{number}. {page.title}"), *page.opening)
        blocks += [
            replace(block, level=block.level + 1) if isinstance(block, Heading) else block
            for block in page.blocks
        ]
    origin = "; ".join(dict.fromkeys(page.origin for page in pages))
    return Document(f"{len(results)} results", tuple(blocks), origin=origin)


def _page(result: Saved) -> Document:
    if isinstance(result, Series):
        return series.document(result)
    return run.document(result, run.blocks(result))


def _table(results: Sequence[Saved], titles: Sequence[str]) -> Table:
    head = ("", "result", "date", "verdict", "req/s", "tok/s", "mean TTFT (ms)", "mean TPOT (ms)")
    rows = []
    for number, (result, title) in enumerate(zip(results, titles, strict=True), 1):
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
        rows.append((str(number), title, *cells))
    return Table.of(head, rows, text_columns=4)
