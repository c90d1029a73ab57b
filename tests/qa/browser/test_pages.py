"""Result pages in Chromium: they need no other file, fit every window, and work from the
keyboard.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from bench.engines.environments import CannotBeMade
from loadgen.analysis.compare import Side, compare
from loadgen.analysis.compare import page as comparison_page
from loadgen.config.settings import RunSettings
from loadgen.document import Code, Document, page_writer
from loadgen.document.charts.plot import WIDE
from tests.helpers.compared_runs import starts
from tests.helpers.drawn_charts import LEFT, RIGHT
from tests.helpers.saved_json import html
from tests.helpers.saved_results import INVALID, SUSPECT, big, ran, search, sweep
from tests.qa.browser.chromium import chromium
from tests.qa.browser.page import launched_browser, open_file, open_folds

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]

LONG = "a-very-long-name-" * 12
RESULTS: dict[str, Callable[[], list[dict[str, Any]]]] = {
    "valid": lambda: [ran()],
    "failing": lambda: [ran(None, SUSPECT, failures=7)],
    "invalid": lambda: [ran(None, INVALID, failures=60, partial="interrupted")],
    "old": lambda: [ran(timeline=None, said=False)],
    "series": lambda: [sweep((1.0, 20.0, True), (2.0, 30.0, True), (4.0, 900.0, False))],
    "search": lambda: [
        search((1.0, 20.0, True), (2.0, 300.0, True), (2.1, 450.0, None), (8.0, 9000.0, False))
    ],
    "several": lambda: [ran(), ran(None, SUSPECT)],
    "long": lambda: [ran() | {"model_id": LONG, "label": LONG}],
    "big": lambda: [big()],
    "real": lambda: [
        ran(
            RunSettings(request_rate=10.0, slo="ttft_p99<30ms,tpot_p99<50ms"),
            SUSPECT,
            failures=7,
            overloaded=True,
        )
        | {"model_id": "Qwen/Qwen3-30B-A3B-Instruct-2507-FP8"}
    ],
}

PAGES = (*RESULTS, "comparison")

# Of the paper; [text, colour, colour behind it] of all words that are seen; [colour, colour behind
# it, opacity] of the lines of charts.
COLOURS = """(() => {
    const shown = (one) => one.getClientRects().length;
    const behind = (one) => {
        for (; one; one = one.parentElement) {
            const colour = getComputedStyle(one).backgroundColor;
            if (colour !== "rgba(0, 0, 0, 0)") return colour;
        }
    };
    const tags = "h1, h2, p, li, td, th, dt, dd, summary, a, code, footer, .good, .bad, .quiet";
    const texts = [...document.querySelectorAll(tags)];
    const words = texts.filter(shown).map((one) => [one.textContent, getComputedStyle(one).color, behind(one)]);
    const paper = behind(document.body);
    for (const one of [...document.querySelectorAll("svg text")].filter(shown)) {
        words.push([one.textContent, getComputedStyle(one).fill, behind(one)]);
    }
    const drawn = ["line", "limit", "missed", "ring", "points", "whisker"].map((name) => `svg .${name}`);
    const lines = [...document.querySelectorAll(drawn.join(", "))].filter(shown).map((one) => {
        const style = getComputedStyle(one);
        return [style.stroke, behind(one), Number(style.strokeOpacity)];
    });
    return [paper, words, lines];
})()"""  # noqa: E501


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    try:
        program = chromium()
    except CannotBeMade as error:
        pytest.skip(str(error))
    with launched_browser(program) as browser:
        yield browser


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    with browser.new_page() as page:
        yield page


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    for name, results in RESULTS.items():
        (folder / f"{name}.html").write_text(html(results()))
    sides = {"base": (20.0, 20.2, 19.9), "new": (10.0, 10.1, 9.9)}
    paths = {name: starts(folder / name, *ttfts) for name, ttfts in sides.items()}
    comparison = compare([Side.read(name, path) for name, path in paths.items()])
    (folder / "comparison.html").write_text(page_writer.html(comparison_page(comparison)))
    return {name: folder / f"{name}.html" for name in PAGES}


def _complaints(page: Page) -> list[str]:
    """Return what the page or Chromium wrote to the console since the file was opened, and all
    uncaught errors.
    """
    page.evaluate("null")  # when this is answered, everything earlier has been reported
    return [one.text for one in page.console_messages()] + [
        one.message for one in page.page_errors()
    ]


@pytest.mark.parametrize("name", PAGES)
def test_page_requests_only_its_file_and_reports_no_error(
    page: Page, files: dict[str, Path], name: str
) -> None:
    requested: list[str] = []
    network = page.context.new_cdp_session(page)  # page.requests() leaves out every /favicon.ico
    network.on("Network.requestWillBeSent", lambda event: requested.append(event["request"]["url"]))
    network.send("Network.enable")
    open_file(page, files[name])
    assert _complaints(page) == []
    assert [url for url in requested if not url.startswith("data:")] == [files[name].as_uri()]


@pytest.mark.parametrize("width", [360, 800, 1280])
@pytest.mark.parametrize("name", PAGES)
def test_page_fits_windows_of_every_width(
    page: Page, files: dict[str, Path], name: str, width: int
) -> None:
    open_file(page, files[name], width=width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    open_folds(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    beyond = """[...document.querySelectorAll("h1, h2, p, li, dt, dd, summary, .note, nav a")]
        .filter((one) => one.getBoundingClientRect().right > innerWidth + 1).map((one) => one.textContent)"""  # noqa: E501
    assert page.evaluate(beyond) == []


BOTTOM = "(name) => document.querySelector(name).getBoundingClientRect().bottom"


@pytest.mark.parametrize("name", ["valid", "failing", "invalid", "real"])
def test_answer_figures_and_first_chart_are_seen_without_scrolling(
    page: Page, files: dict[str, Path], name: str
) -> None:
    open_file(page, files[name], width=1280, height=800)
    assert page.evaluate(BOTTOM, "svg.wide") <= 800
    open_file(page, files[name], width=400, height=800)
    assert page.evaluate(BOTTOM, ".facts") <= 800
    assert page.evaluate(BOTTOM, "svg.narrow") <= 1600


# Of each drawing that is seen: the class, the heights of its letters on the screen, the words that
# stand in each other or beyond its edges, and the most numbers on an axis.
DRAWINGS = """[...document.querySelectorAll("svg")].filter((one) => one.getClientRects().length).map((one) => {
    const box = one.getBoundingClientRect();
    const texts = [...one.querySelectorAll("text")].map((text) => [text, text.getBoundingClientRect()]);
    const beyond = texts.filter(([, at]) => at.left < box.left - 2 || at.right > box.right + 2);
    // Lines of letters are less high than their boxes.
    const touching = texts.filter(([, at], number) => texts.some(([, other], place) => place < number
        && at.left < other.right && other.left < at.right
        && at.top + 4 < other.bottom - 4 && other.top + 4 < at.bottom - 4));
    const scale = box.width / one.viewBox.baseVal.width;
    return [one.classList[1], parseFloat(getComputedStyle(one).fontSize) * scale,
        [...beyond, ...touching].map(([text]) => text.textContent)];
})"""  # noqa: E501


@pytest.mark.parametrize("width", [360, 400, 890, 1280])
@pytest.mark.parametrize("name", ["failing", "big", "real", "series", "search", "comparison"])
def test_words_of_charts_can_be_read_at_every_width(
    page: Page, files: dict[str, Path], name: str, width: int
) -> None:
    open_file(page, files[name], width=width)
    open_folds(page)
    drawings = page.evaluate(DRAWINGS)
    assert {layout for layout, _, _ in drawings} == {"narrow" if width <= 880 else "wide"}
    assert min(height for _, height, _ in drawings) >= 12
    assert [words for _, _, words in drawings if words] == []


@pytest.mark.parametrize("width", [360, 400])
def test_narrow_table_shows_p50_and_p99_without_scrolling(
    page: Page, files: dict[str, Path], width: int
) -> None:
    open_file(page, files["failing"], width=width)
    open_folds(page)
    shown = """[...document.querySelectorAll("th")].filter((one) => ["p50", "p99"].includes(one.textContent))
        .map((one) => one.getBoundingClientRect().right)"""  # noqa: E501
    assert all(right <= width for right in page.evaluate(shown))
    wide = """[...document.querySelectorAll("figure, pre.taken")]
        .filter((one) => one.scrollWidth > one.clientWidth).length"""
    assert page.evaluate(wide) == 0


@pytest.mark.parametrize("width", [400, 1280])
@pytest.mark.parametrize("name", ["series", "search", "comparison"])
def test_answer_and_chart_of_several_runs_are_seen_without_scrolling(
    page: Page, files: dict[str, Path], name: str, width: int
) -> None:
    open_file(page, files[name], width=width, height=800)
    drawing, most = ("svg.narrow", 900) if width == 400 else ("svg.wide", 800)
    assert page.evaluate(BOTTOM, ".badge") <= 800
    assert page.evaluate(BOTTOM, drawing) <= most


@pytest.mark.parametrize("width", [360, 1280])
def test_keyboard_reaches_every_term_fold_and_chart(
    page: Page, files: dict[str, Path], width: int
) -> None:
    open_file(page, files["failing"], width=width)
    open_folds(page)
    drawing = "svg.narrow" if width == 360 else "svg.wide"
    parts = f"dfn, summary, {drawing}, button"
    wanted = page.evaluate("(parts) => document.querySelectorAll(parts).length", parts)
    reached = set()
    for _ in range(wanted + 60):  # tables that are wider than the window can be reached too
        page.keyboard.press("Tab")
        found = page.evaluate(
            """(async (parts) => {
            const frame = () => new Promise(requestAnimationFrame);
            await frame(), await frame();  // laid out by then
            const all = [...document.querySelectorAll(parts)];
            const one = document.activeElement;
            const told = one.matches("dfn") ? one.nextElementSibling : null;
            const box = told && told.getBoundingClientRect();
            const seen = !told || (box.width > 0 && box.top >= 0 && box.left >= 0
                && box.right <= innerWidth && box.bottom <= innerHeight);
            return [all.indexOf(one), one.tagName, seen];
        })""",
            parts,
        )
        if found[0] >= 0:
            reached.add(found[0])
            assert found[2], found
        if found[1] == "SUMMARY":
            before = page.evaluate("document.activeElement.parentElement.open")
            page.keyboard.press("Enter")
            assert page.evaluate("document.activeElement.parentElement.open") is not before
            page.keyboard.press("Enter")
    assert reached == set(range(wanted))


def test_term_shows_its_meaning_on_hover_and_focus(page: Page, files: dict[str, Path]) -> None:
    open_file(page, files["valid"])
    shown = """[...document.querySelectorAll("[role=tooltip]")]
        .filter((one) => one.offsetWidth).map((one) => one.textContent)"""
    assert page.evaluate(shown) == []
    box = page.evaluate(
        "document.querySelector('dfn').scrollIntoView(), "
        "document.querySelector('dfn').getBoundingClientRect().toJSON()"
    )
    page.mouse.move(box["x"] + 3, box["y"] + 3)
    assert page.evaluate(shown) == [
        "A request is ok if it was answered with a status of success (2xx), a token, a finish "
        "reason or [DONE], and no error."
    ]
    page.mouse.move(1, 1)
    assert page.evaluate(shown) == []
    page.locator("dfn").first.focus()
    assert len(page.evaluate(shown)) == 1
    page.keyboard.press("Escape")
    assert page.evaluate(shown) == []


def test_chart_shows_values_by_arrow_keys_and_on_hover(page: Page, files: dict[str, Path]) -> None:
    open_file(page, files["failing"])
    open_folds(page)
    page.locator("svg.wide").nth(2).focus()
    said = "document.querySelectorAll('.readout')[2].textContent"
    page.keyboard.press("ArrowRight")
    first = page.evaluate(said)
    assert first.startswith(
        "0.125 s: sent 40 /s, ended 0 /s, asked 10 /s, E2EL 92 ms to 112 ms (3), "
    )
    page.keyboard.press("ArrowRight")
    assert page.evaluate(said) != first
    page.keyboard.press("End")
    assert page.evaluate(said).startswith("5.875 s: ")
    page.evaluate("document.querySelectorAll('svg.wide')[2].scrollIntoView()")
    box = page.evaluate("document.querySelectorAll('svg.wide')[2].getBoundingClientRect().toJSON()")
    place = LEFT + (RIGHT - LEFT) * 5.5 / 24
    page.mouse.move(box["x"] + box["width"] * place / WIDE.width, box["y"] + 60)
    assert "failed 2" in page.evaluate(said)
    open_file(page, files["failing"], width=400)
    page.locator("svg.narrow").first.focus()
    page.keyboard.press("End")
    assert page.evaluate("document.querySelector('.readout').textContent").startswith("5.875 s: ")


def test_button_copies_the_command(page: Page, files: dict[str, Path]) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    open_file(page, files["valid"])
    open_folds(page)
    page.locator("button").first.focus()
    page.keyboard.press("Enter")
    expect(page.locator("button").first).to_have_text("Copied")
    command = page.evaluate("document.querySelector('pre.taken').textContent")
    assert (
        command == "loadgen run --random-input-len 1024 --random-output-len 128 --request-rate 10"
    )
    assert page.evaluate("navigator.clipboard.readText()") == command


def test_button_selects_the_command_without_a_clipboard(page: Page, files: dict[str, Path]) -> None:
    open_file(page, files["valid"])
    open_folds(page)
    page.evaluate(
        "Object.defineProperty(navigator, 'clipboard', { value: undefined }); "
        "document.execCommand = () => false"
    )
    page.locator("button").first.click()
    expect(page.locator("button").first).to_have_text("Selected: press Ctrl+C")
    assert page.evaluate("getSelection().toString()") == page.evaluate(
        "document.querySelector('pre.taken').textContent"
    )


@pytest.mark.parametrize("width", [400, 1280])
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("name", ["failing", "series", "search", "comparison", "invalid"])
def test_words_and_lines_contrast_with_their_background(
    page: Page, files: dict[str, Path], name: str, dark: bool, width: int
) -> None:
    open_file(page, files[name], dark=dark, width=width)
    open_folds(page)
    assert (_luminance(_checked_background(page)) < 0.05) is dark


def _checked_background(page: Page) -> str:
    """Return the color of the paper after a check that all words and lines contrast with what is
    behind them.
    """
    paper, words, lines = page.evaluate(COLOURS)
    for text, colour, behind in words:
        assert _contrast(colour, behind) >= 4.5, (text, colour, behind)
    assert lines
    for colour, behind, opacity in lines:
        assert _contrast(_mixed(colour, behind, opacity), behind) >= 3, (colour, behind, opacity)
    return str(paper)


def _parts(colour: str) -> list[float]:
    return [float(part) for part in colour.removeprefix("rgb(").removesuffix(")").split(",")]


def _mixed(colour: str, behind: str, opacity: float) -> str:
    """Return what is seen of a color that is not opaque."""
    pairs = zip(_parts(colour), _parts(behind), strict=True)
    return f"rgb({', '.join(str(opacity * one + (1 - opacity) * other) for one, other in pairs)})"


def _luminance(colour: str) -> float:
    """Return the relative luminance of an `rgb(r, g, b)` color by the Web Content Accessibility
    Guidelines.
    """
    shares = (part / 255 for part in _parts(colour))
    red, green, blue = (
        share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _contrast(one: str, other: str) -> float:
    dark, light = sorted((_luminance(one), _luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_page_is_whole_without_scripts(
    browser: Browser, page: Page, files: dict[str, Path]
) -> None:
    counted = (
        "['table', 'svg', 'details', 'dfn', 'pre'].map((tag) => "
        "document.querySelectorAll(tag).length)"
    )
    open_file(page, files["failing"])
    whole = page.evaluate(counted)
    with browser.new_page(java_script_enabled=False) as scriptless:
        open_file(scriptless, files["failing"])
        assert scriptless.evaluate(counted) == whole
        assert scriptless.locator("button, .readout").count() == 0


def test_injected_script_does_not_run(page: Page, tmp_path: Path) -> None:
    text = page_writer.html(Document("Title", (Code("x", copyable=True),)))
    (tmp_path / "p.html").write_text(
        text.replace("<main>", "<main><script>window.theirs = 1</script>")
    )
    open_file(page, tmp_path / "p.html")
    assert page.evaluate("window.theirs") is None
    assert len(_complaints(page)) == 1


@pytest.mark.parametrize("name", ["failing", "series"])
def test_print_is_dark_on_light_without_controls(
    page: Page, files: dict[str, Path], name: str
) -> None:
    open_file(page, files[name], dark=True, paper=True)
    assert _luminance(_checked_background(page)) > 0.95
    assert (
        page.evaluate(
            "[...document.querySelectorAll('nav, button, .readout')].filter((one) => "
            "one.offsetWidth).length"
        )
        == 0
    )
    assert page.pdf(print_background=False).startswith(b"%PDF")
