"""The page of a result in a real browser: it needs nothing else, fits every window, and works from the keyboard."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from loadgen.report import html as pages
from loadgen.report.html import Code, Document
from tests.helpers.saved_json import html
from tests.helpers.saved_results import INVALID, SUSPECT, big, ran, sweep
from tests.qa.browser.chromium import chromium
from tests.qa.browser.devtools import Browser, Tab
from tests.qa.engines.environments import CannotBeMade

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]

LONG = "a-very-long-name-" * 12
RESULTS: dict[str, Callable[[], list[dict[str, Any]]]] = {
    "valid": lambda: [ran()],
    "failing": lambda: [ran(None, SUSPECT, failures=7)],
    "invalid": lambda: [ran(None, INVALID, failures=60, partial="interrupted")],
    "old": lambda: [ran(timeline=None, said=False)],
    "series": lambda: [sweep((1.0, 20.0, True), (2.0, 30.0, True), (4.0, 900.0, False))],
    "several": lambda: [ran(), ran(None, SUSPECT)],
    "long": lambda: [ran() | {"model_id": LONG, "label": LONG}],
    "big": lambda: [big()],
}

# Of the paper; [text, colour, colour behind it] of all words that are seen; of the lines of charts.
COLOURS = """(() => {
    const shown = (one) => one.getClientRects().length;
    const behind = (one) => {
        for (; one; one = one.parentElement) {
            const colour = getComputedStyle(one).backgroundColor;
            if (colour !== "rgba(0, 0, 0, 0)") return colour;
        }
    };
    const tags = "h1, h2, p, li, td, th, dt, dd, summary, a, code, .good, .bad, .quiet";
    const texts = [...document.querySelectorAll(tags)];
    const words = texts.filter(shown).map((one) => [one.textContent, getComputedStyle(one).color, behind(one)]);
    const paper = behind(document.body);
    for (const one of document.querySelectorAll("svg text")) {
        words.push([one.textContent, getComputedStyle(one).fill, paper]);
    }
    const lines = [...document.querySelectorAll("svg .line, svg .limit, svg .missed, svg .ring")];
    return [paper, words, lines.map((one) => getComputedStyle(one).stroke)];
})()"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    try:
        program = chromium()
    except CannotBeMade as error:
        pytest.skip(str(error))
    with Browser.started(program) as browser:
        yield browser


@pytest.fixture(scope="module")
def tab(browser: Browser) -> Tab:
    return Tab(browser)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    for name, results in RESULTS.items():
        (folder / f"{name}.html").write_text(html(results()))
    return {name: folder / f"{name}.html" for name in RESULTS}


@pytest.mark.parametrize("name", RESULTS)
def test_it_asks_for_nothing_and_nothing_is_wrong_with_it(tab: Tab, files: dict[str, Path], name: str) -> None:
    tab.show(files[name])
    assert tab.complaints() == []
    assert tab.asked() == [files[name].as_uri()]


@pytest.mark.parametrize("width", [360, 800, 1280])
@pytest.mark.parametrize("name", RESULTS)
def test_no_window_is_too_narrow(tab: Tab, files: dict[str, Path], name: str, width: int) -> None:
    tab.show(files[name], width=width)
    assert tab.tell("document.documentElement.scrollWidth") <= width
    tab.tell("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")
    assert tab.tell("document.documentElement.scrollWidth") <= width
    beyond = """[...document.querySelectorAll("h1, h2, p, li, dt, dd, summary, .note, nav a")]
        .filter((one) => one.getBoundingClientRect().right > innerWidth + 1).map((one) => one.textContent)"""
    assert tab.tell(beyond) == []


@pytest.mark.parametrize("width", [360, 1280])
def test_the_keyboard_reaches_every_term_fold_and_chart_and_shows_what_they_hold(
    tab: Tab, files: dict[str, Path], width: int
) -> None:
    tab.show(files["failing"], width=width)
    wanted = tab.tell("document.querySelectorAll('dfn, summary, svg, button, nav a').length")
    reached = set()
    for _ in range(wanted + 60):  # tables that are wider than the window can be reached too
        tab.press("Tab")
        found = tab.tell("""(async () => {
            await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));  // laid out by then
            const all = [...document.querySelectorAll("dfn, summary, svg, button, nav a")];
            const one = document.activeElement;
            const told = one.matches("dfn") ? one.nextElementSibling : null;
            const box = told && told.getBoundingClientRect();
            const seen = !told || (box.width > 0 && box.top >= 0 && box.left >= 0
                && box.right <= innerWidth && box.bottom <= innerHeight);
            return [all.indexOf(one), one.tagName, seen];
        })()""")
        if found[0] >= 0:
            reached.add(found[0])
            assert found[2], found
        if found[1] == "SUMMARY":
            before = tab.tell("document.activeElement.parentElement.open")
            tab.press("Enter")
            assert tab.tell("document.activeElement.parentElement.open") is not before
            tab.press("Enter")
    assert reached == set(range(wanted))


def test_what_a_term_means_is_shown_where_one_points_and_hidden_again(tab: Tab, files: dict[str, Path]) -> None:
    tab.show(files["valid"])
    shown = """[...document.querySelectorAll("[role=tooltip]")]
        .filter((one) => one.offsetWidth).map((one) => one.textContent)"""
    assert tab.tell(shown) == []
    box = tab.tell(
        "document.querySelector('dfn').scrollIntoView(), document.querySelector('dfn').getBoundingClientRect().toJSON()"
    )
    tab.point(box["x"] + 3, box["y"] + 3)
    assert tab.tell(shown) == [
        "A request is ok when it was answered with status 200, a token and a finish reason, and no error."
    ]
    tab.point(1, 1)
    assert tab.tell(shown) == []
    tab.tell("document.querySelector('dfn').focus()")
    assert len(tab.tell(shown)) == 1
    tab.press("Escape")
    assert tab.tell(shown) == []


def test_a_chart_tells_its_values_by_arrow_keys_and_where_one_points(tab: Tab, files: dict[str, Path]) -> None:
    tab.show(files["failing"])
    tab.tell("document.querySelectorAll('svg')[1].focus()")
    said = "document.querySelectorAll('.readout')[1].textContent"
    tab.press("ArrowRight")
    first = tab.tell(said)
    assert first.startswith("0.125 s: sent 40 /s, ended 0 /s, in flight 10, ")  # the most, not those at an end
    tab.press("ArrowRight")
    assert tab.tell(said) != first
    tab.press("End")
    assert tab.tell(said).startswith("5.875 s: ")
    tab.tell("document.querySelectorAll('svg')[1].scrollIntoView()")
    box = tab.tell("document.querySelectorAll('svg')[1].getBoundingClientRect().toJSON()")
    tab.point(box["x"] + box["width"] * (52 + 656 * 5.5 / 24) / 720, box["y"] + 60)
    assert "failed 2" in tab.tell(said)


def test_the_command_is_copied(tab: Tab, files: dict[str, Path]) -> None:
    tab.allow("clipboardReadWrite", "clipboardSanitizedWrite")
    tab.show(files["valid"])
    tab.tell("document.querySelector('button').focus()")
    tab.press("Enter")
    tab.tell("new Promise((done) => setTimeout(done, 200))")
    assert tab.tell("document.querySelector('button').textContent") == "Copied"
    command = tab.tell("document.querySelector('pre.taken').textContent")
    assert command == "loadgen run --random-input-len 1024 --random-output-len 128 --request-rate 10"
    assert tab.tell("navigator.clipboard.readText()") == command


def test_where_there_is_no_clipboard_the_command_is_selected(tab: Tab, files: dict[str, Path]) -> None:
    tab.show(files["valid"])
    tab.tell("Object.defineProperty(navigator, 'clipboard', { value: undefined }); document.execCommand = () => false")
    tab.tell("document.querySelector('button').click()")
    tab.tell("new Promise((done) => setTimeout(done, 200))")
    assert tab.tell("document.querySelector('button').textContent") == "Selected: press Ctrl+C"
    assert tab.tell("getSelection().toString()") == tab.tell("document.querySelector('pre.taken').textContent")


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("name", ["failing", "series", "invalid"])
def test_words_and_lines_stand_out_from_what_is_behind_them(
    tab: Tab, files: dict[str, Path], name: str, dark: bool
) -> None:
    tab.show(files[name], dark=dark)
    assert (_luminance(_read(tab)) < 0.05) is dark


def _read(tab: Tab) -> str:
    """The colour of the paper, from which all words and lines stand out as the guidelines below ask."""
    paper, words, lines = tab.tell(COLOURS)
    for text, colour, behind in words:
        assert _contrast(colour, behind) >= 4.5, (text, colour, behind)
    assert lines
    for colour in lines:
        assert _contrast(colour, paper) >= 3, (colour, paper)
    return str(paper)


def _luminance(colour: str) -> float:
    """By the Web Content Accessibility Guidelines, of what a browser writes as rgb(r, g, b)."""
    parts = [int(part) / 255 for part in colour.removeprefix("rgb(").removesuffix(")").split(",")]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _contrast(one: str, other: str) -> float:
    dark, light = sorted((_luminance(one), _luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_without_scripts_the_page_is_whole(tab: Tab, files: dict[str, Path]) -> None:
    counted = "['table', 'svg', 'details', 'dfn', 'pre'].map((tag) => document.querySelectorAll(tag).length)"
    tab.show(files["failing"])
    whole = tab.tell(counted)
    tab.show(files["failing"], scripts=False)
    assert tab.tell(counted) == whole
    assert tab.tell("document.querySelectorAll('button, .readout').length") == 0


def test_a_script_that_somebody_else_has_put_there_does_not_run(tab: Tab, tmp_path: Path) -> None:
    text = pages.html(Document("Title", (Code("x", taken=True),)))
    (tmp_path / "p.html").write_text(text.replace("<main>", "<main><script>window.theirs = 1</script>"))
    tab.show(tmp_path / "p.html")
    assert tab.tell("window.theirs") is None
    assert len(tab.complaints()) == 1


@pytest.mark.parametrize("name", ["failing", "series"])
def test_on_paper_it_is_dark_on_light_with_nothing_that_only_a_screen_can_use(
    tab: Tab, files: dict[str, Path], name: str
) -> None:
    tab.show(files[name], dark=True, paper=True)
    assert _luminance(_read(tab)) > 0.95
    assert (
        tab.tell("[...document.querySelectorAll('nav, button, .readout')].filter((one) => one.offsetWidth).length") == 0
    )
    assert tab.printed().startswith(b"%PDF")
