"""HTML files opened in Chromium, which Playwright drives."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from tests.qa.browser.chromium import Program


@contextlib.contextmanager
def launched_browser(program: Program) -> Iterator[Browser]:
    """Launch Chromium without a window; it ends with the context."""
    with (
        sync_playwright() as playwright,
        playwright.chromium.launch(
            executable_path=program.path, env={**os.environ, **program.variables}
        ) as browser,
    ):
        yield browser


def open_file(
    page: Page,
    path: Path,
    *,
    width: int = 1280,
    height: int = 900,
    dark: bool = False,
    paper: bool = False,
) -> None:
    """Load an HTML file into a page.

    Args:
        page: Of a browser.
        path: The file.
        width: Of the window, in pixels.
        height: Of the window, in pixels.
        dark: Whether the user prefers a dark color scheme.
        paper: Whether the page is laid out for print.
    """
    page.set_viewport_size({"width": width, "height": height})
    page.emulate_media(
        media="print" if paper else "screen", color_scheme="dark" if dark else "light"
    )
    page.goto(path.as_uri())


def open_folds(page: Page) -> None:
    """Open every `<details>` element of a page."""
    page.locator("details").evaluate_all(
        "(folds) => folds.forEach((fold) => { fold.open = true; })"
    )
