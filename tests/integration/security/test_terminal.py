"""Text of a server or file is escaped before it is shown on a terminal."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from rich.console import Console
from rich.live import Live

from loadgen.checks import Check
from loadgen.cli.live.view import ScreenView
from loadgen.cli.main import dispatch
from loadgen.config.settings import RunSettings
from loadgen.core.outcome import Outcome
from loadgen.errors import BadInput
from loadgen.metrics.progress import Progress
from loadgen.report import to_json
from loadgen.report.files import result_path
from loadgen.report.result import RunResult
from loadgen.util.terminal_text import printable, printable_lines
from tests.helpers.hostile_server import ESCAPES, UNSAFE
from tests.helpers.run_facts import failed, measured, result, steady
from tests.helpers.saved_json import render


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain [red]text[/]", "plain [red]text[/]"),
        ("é 中 😀", "é 中 😀"),
        ("\x1b[31m", "\\x1b[31m"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("\x9b31m\x90", "\\x9b31m\\x90"),
        ("a\r\nb\tc\x00\x7f", "a\\r\\nb\\tc\\x00\\x7f"),
        ("\u202eabc\u2066\u200f", "\\u202eabc\\u2066\\u200f"),
        ("a\u2028b\u200b\ufeff", "a\\u2028b\\u200b\\ufeff"),
        ("\ud800", "\\ud800"),
    ],
)
def test_control_characters_are_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown
    assert printable_lines(f"{text}\nnext") == printable_lines(text) + "\nnext"


def hostile(value: Any) -> Any:
    """A JSON value in which every text, keys of what is counted by name included, has become
    hostile.
    """
    if isinstance(value, str):
        return value + ESCAPES
    if isinstance(value, list):
        return [hostile(item) for item in value]
    if isinstance(value, dict):
        return {key: hostile(item) for key, item in value.items()}
    return value


def test_every_text_of_a_result_is_escaped() -> None:
    check = Check("a check", False, "1 s", "2 s", "look")
    made = result(measured([steady(), failed(1, Outcome.STATUS, detail=ESCAPES)]), checks=[check])
    own = made["loadgen"]
    own["examples"] = {
        name + ESCAPES: [hostile(example) | {"phase": example["phase"]} for example in found]
        for name, found in own["examples"].items()
    }
    own["checks"] = [hostile(row) | {"comparison": "<="} for row in own["checks"]]
    own["slo"] = hostile(own["slo"])
    own["partial"] = own["tokens"]["output_counted_by"] = own["client"]["records_error"] = (
        "x" + ESCAPES
    )
    text = render(made)
    assert "\\x1b[2J" in text
    assert not UNSAFE.search(text)


@pytest.mark.parametrize("name", ["verdict", "latency_from", "outcomes", "phase", "comparison"])
def test_a_hostile_word_of_a_fixed_list_is_refused_unobeyed(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    check = Check("a check", False, "1 s", "2 s", "look")
    made = result(measured([steady(), failed(1, Outcome.STATUS)]), checks=[check])
    own = made["loadgen"]
    inside = {"phase": own["examples"]["status(503)"][0], "comparison": own["checks"][0]}
    holder = inside.get(name, own)
    if name == "outcomes":
        own[name] = {key + ESCAPES: value for key, value in own[name].items()}
    else:
        holder[name] += ESCAPES
    path = tmp_path / "result.json"
    path.write_text(to_json(made))
    assert dispatch(["report", str(path)]) == 2
    out, err = capsys.readouterr()
    assert not out
    assert not UNSAFE.search(err.replace("\n", ""))


def test_a_saved_result_can_be_looked_at() -> None:
    text = to_json({"a": f"{ESCAPES}é 😀\U000e0001"})
    assert json.loads(text) == {"a": f"{ESCAPES}é 😀\U000e0001"}
    assert "é 😀" in text
    assert all(c.isprintable() for c in text)


@pytest.mark.parametrize(
    "change",
    [
        lambda made: made.pop("completed"),
        lambda made: made.update(duration="long" + ESCAPES),
        lambda made: made["loadgen"].pop("checks"),
        lambda made: made["loadgen"].update(examples=[ESCAPES]),
        lambda made: made["loadgen"]["provenance"]["settings"].update(metric_percentiles=ESCAPES),
        lambda made: made["loadgen"].update(latency_ms={}),
    ],
)
def test_a_result_made_by_hand_is_refused_in_one_line(
    change: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = result(measured([steady()]))
    change(made)  # type: ignore[operator]
    path = tmp_path / "result.json"
    path.write_text(json.dumps(made))
    assert dispatch(["report", str(path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"loadgen report: {path}")
    assert err.count("\n") == 1
    assert not UNSAFE.search(err)


def test_an_error_is_shown_without_obeying_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(argv: list[str]) -> int:
        raise BadInput("--model", ESCAPES, "none")

    monkeypatch.setattr("loadgen.cli.commands.report.main", refuse)
    assert dispatch(["report"]) == 2
    assert not UNSAFE.search(capsys.readouterr().err.replace("\r", "").replace("\n", ""))


def test_the_live_view_neither_obeys_nor_formats_what_others_say() -> None:
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=200)
    with Live(
        screen := ScreenView(RunSettings(), console), console=console, auto_refresh=False
    ) as live:
        screen.note(ESCAPES)
        screen.show(Progress("starting", 2.0, note=ESCAPES))
        live.refresh()
        screen.show(Progress("running", 2.0, failures={"status(503)" + ESCAPES: 1}))
        live.refresh()
    lines = [line for line in file.getvalue().split("\n") if "owned" in line]
    assert len(lines) >= 3
    for line in lines:
        assert "\\x1b[2J\\x1b]0;owned\\x07\\x9b31m\\u202egnp.exe\\r\\n[red]" in line


@pytest.mark.parametrize(
    "model", ["../../etc/passwd", "a/..", "x\x00y", "m\x1b[2J", "a b;rm -rf ~", "\n"]
)
def test_a_model_that_the_server_names_cannot_choose_where_a_result_goes(
    model: str, tmp_path: Path
) -> None:
    settings = RunSettings(result_dir=str(tmp_path))
    numbers = RunResult.from_dict(result(measured([steady()]))).numbers
    path = result_path(settings, structs.replace(numbers, model_id=model))
    assert path.parent == tmp_path
    assert path.name.isprintable()
    assert " " not in path.name
