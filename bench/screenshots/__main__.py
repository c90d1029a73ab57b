"""Takes the screenshots of docs/pictures from saved results: `python -m bench.screenshots`."""

import shlex
import sys
import tempfile
from pathlib import Path

from bench.screenshots import terminal
from bench.screenshots.cases import CASES, DIGESTS, LIVE, PICTURES, RESULTS, digests, write_page
from tests.helpers.command_line import LOADGEN
from tests.helpers.source import ROOT
from tests.qa.browser.chromium import chromium
from tests.qa.browser.page import launched_browser, open_file

WINDOWS = ((1280, 800), (400, 800))  # pixels
TERMINALS = ((80, 24), (160, 50))  # columns and rows


def pages(folder: Path) -> None:
    """Photograph the first screen of each page."""
    with launched_browser(chromium()) as browser, browser.new_page() as page:
        for case in CASES:
            path = folder / f"{case.name}.html"
            write_page(case, path)
            for width, height in WINDOWS:
                open_file(page, path, width=width, height=height)
                (PICTURES / f"{case.name}-{width}.png").write_bytes(page.screenshot())


def reports() -> None:
    """Draw the end of each console report, and the live view."""
    for columns, rows in TERMINALS:
        for case in CASES:
            seen = terminal.capture([*LOADGEN, *case.words], columns, rows, RESULTS)
            _draw(
                f"{case.name}-{columns}x{rows}", seen, columns, f"loadgen {shlex.join(case.words)}"
            )
        for name in LIVE:
            replay = [sys.executable, "-m", "bench.screenshots.replay", name]
            seen = terminal.capture(replay, columns, rows, ROOT)
            _draw(f"live-{name}-{columns}x{rows}", seen, columns, "loadgen run")


def _draw(name: str, seen: str, columns: int, title: str) -> None:
    (PICTURES / f"{name}.svg").write_text(terminal.svg(seen, columns, title))


def main() -> None:
    """Take all screenshots, and note what was rendered."""
    with tempfile.TemporaryDirectory() as folder:
        pages(Path(folder))
        reports()
        DIGESTS.write_text(digests(Path(folder)))


if __name__ == "__main__":
    main()
