"""`python -m tests.qa.browser PAGE.html PICTURE.png`: a screenshot of a page."""

import argparse
from pathlib import Path

from tests.qa.browser.chromium import chromium
from tests.qa.browser.page import launched_browser, open_file, open_folds


def main() -> None:
    """Take the screenshot that the command line describes."""
    parser = argparse.ArgumentParser(prog="python -m tests.qa.browser", description=__doc__)
    parser.add_argument("page", type=Path)
    parser.add_argument("picture", type=Path)
    parser.add_argument(
        "--width", type=int, default=1280, help="width of the window in pixels (1280)"
    )
    parser.add_argument(
        "--height", type=int, help="height of the window in pixels (the height of the page)"
    )
    parser.add_argument("--dark", action="store_true", help="prefer a dark color scheme")
    parser.add_argument("--paper", action="store_true", help="lay the page out for print")
    parser.add_argument("--open", action="store_true", help="open all folds")
    parser.add_argument(
        "--run", default="", help="a JavaScript expression to evaluate in the page first"
    )
    options = parser.parse_args()
    with launched_browser(chromium()) as browser:
        page = browser.new_page()
        path, height = options.page.resolve(), options.height or 900
        open_file(
            page, path, width=options.width, height=height, dark=options.dark, paper=options.paper
        )
        if options.open:
            open_folds(page)
        if options.run:
            page.evaluate(options.run)
        options.picture.write_bytes(page.screenshot(full_page=options.height is None))


if __name__ == "__main__":
    main()
