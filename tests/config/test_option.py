"""An option declares all that is known of a setting, and reads and checks its values."""

import ast
from typing import Any, Literal

import pytest

from loadgen.config.option import (
    FROM_1,
    SECONDS,
    SHARE,
    SHARES,
    Form,
    check_options,
    options,
    options_about,
    settings_class,
)
from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput, setting
from tests.helpers.source import ROOT

declared = options_about("load")
# Arguments of the library and flags of commands that errors name, beside the settings of a run.
OTHERS = {"over", "fail_if", "noise", "save_noise", "anyway", "store", "output"}


def size(text: str) -> None:
    if text != "small":
        raise BadInput(setting.spoon, f"{text!r} is too large", "give a small one")


@settings_class
class Brewing:
    cups: int = declared(1, "cups", range=FROM_1)
    time: float | None = declared(None, "time", unit=SECONDS)
    milk: float = declared(0.0, "share of milk", unit=SHARES, range=SHARE, excludes=("lemon",))
    lemon: bool = declared(False, "lemon")
    kind: Literal["green", "black"] = declared("green", "kind")
    names: tuple[str, ...] = declared(
        (), "names", form=Form("[a-z]+", "{!r} is no name", "write small letters", separator=" ")
    )
    sugar: int | None = declared(None, "lumps", needs="spoon")
    spoon: str | None = declared(None, "spoon", parse=size)

    def __init__(self, **values: Any) -> None:
        vars(self).update(values)


@pytest.mark.parametrize(
    ("name", "word", "value"),
    [
        ("cups", "3", 3),
        ("time", "2m", 120.0),
        ("milk", "25%", 0.25),
        ("lemon", "Yes", True),
        ("kind", "black", "black"),
        ("names", "ann", ("ann",)),
    ],
)
def test_a_word_is_read_by_the_type_and_the_unit(name: str, word: str, value: Any) -> None:
    assert options(Brewing)[name].read(word) == value


@pytest.mark.parametrize(
    ("name", "word", "text"),
    [
        ("cups", "many", "--cups: 'many' is not a whole number; write digits only, for example 10"),
        ("time", "soon", "--time: 'soon' is not a time; write seconds, or a number with ms, s, m"),
        ("milk", "some", "--milk: 'some' is not a share; write for example 0.05 or 5%"),
        ("lemon", "two", "--lemon: 'two' is neither true nor false; write one of them"),
    ],
)
def test_a_word_of_another_kind_is_refused(name: str, word: str, text: str) -> None:
    with pytest.raises(BadInput) as caught:
        options(Brewing)[name].read(word)
    assert str(caught.value).startswith(text)


@pytest.mark.parametrize(
    ("name", "value", "becomes"),
    [
        ("cups", "3", 3),
        ("time", 3, 3.0),
        ("spoon", 3, "3"),
        ("names", "ann", ("ann",)),
        ("names", ["ann", 3], ("ann", "3")),
        ("lemon", "on", True),
        ("lemon", 0, False),
    ],
)
def test_a_file_may_write_a_value_in_another_type(name: str, value: Any, becomes: Any) -> None:
    assert options(Brewing)[name].of_file(value) == becomes


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"cups": 0}, "--cups: 0 is out of range; give 1 or more"),
        ({"kind": "red"}, "--kind: unknown value 'red'; choose from green, black"),
        ({"spoon": ""}, "--spoon: is empty; give a value, or leave it out"),
        (
            {"milk": 0.1, "lemon": True},
            "--lemon: given together with --milk; leave one of the two out",
        ),
        ({"sugar": 2}, "--sugar: given without --spoon; add --spoon, or leave it out"),
        ({"names": ("ann", "bob 3")}, "--names: '3' is no name; write small letters"),
        ({"spoon": "large"}, "--spoon: 'large' is too large; give a small one"),
    ],
)
def test_values_that_cannot_be_used_are_refused(values: dict[str, Any], text: str) -> None:
    with pytest.raises(BadInput) as caught:
        check_options(Brewing(**values))
    assert str(caught.value) == text


@pytest.mark.parametrize("values", [{"milk": 0.1, "lemon": False}, {"sugar": 2, "spoon": "small"}])
def test_what_is_off_excludes_nothing(values: dict[str, Any]) -> None:
    check_options(Brewing(**values))


def test_a_value_that_another_implies_is_not_given() -> None:
    check_options(Brewing(milk=0.1, lemon=True), {"lemon": True})


def test_errors_name_settings_that_there_are() -> None:
    known = options(RunSettings).keys() | OTHERS
    for path in (ROOT / "loadgen").rglob("*.py"):
        tree = ast.parse(path.read_text())
        if not any(
            isinstance(node, ast.ImportFrom) and "setting" in {name.name for name in node.names}
            for node in ast.walk(tree)
        ):
            continue
        names = {
            node.attr
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == "setting"
        }
        assert names <= known, path
