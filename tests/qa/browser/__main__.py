"""`python -m tests.qa.browser PAGE.html PICTURE.png`: what a page looks like."""

import argparse
from pathlib import Path

from tests.qa.browser.chromium import chromium
from tests.qa.browser.devtools import Browser, Tab


def main() -> None:
    """Carry out the command."""
    parser = argparse.ArgumentParser(prog="python -m tests.qa.browser", description=__doc__)
    parser.add_argument("page", type=Path)
    parser.add_argument("picture", type=Path)
    parser.add_argument("--width", type=int, default=1280, help="of the window, in pixels (1280)")
    parser.add_argument("--height", type=int, help="likewise (as high as the page)")
    parser.add_argument("--dark", action="store_true", help="as who likes it dark sees it")
    parser.add_argument("--paper", action="store_true", help="as it is printed")
    parser.add_argument("--open", action="store_true", help="with all folds open")
    parser.add_argument("--run", default="", help="an expression of JavaScript to tell the page before")
    asked = parser.parse_args()
    with Browser.started(chromium()) as browser:
        tab = Tab(browser)
        tab.show(
            asked.page.resolve(), width=asked.width, height=asked.height or 900, dark=asked.dark, paper=asked.paper
        )
        if asked.open:
            tab.tell("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")
        if asked.run:
            tab.tell(asked.run)
        asked.picture.write_bytes(tab.pictured(whole=asked.height is None))


if __name__ == "__main__":
    main()
