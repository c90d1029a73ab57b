"""A condition is a few forms of Python's notation, and nothing of it is executed by Python."""

from typing import Any

import pytest

from loadgen.errors import BadInput
from loadgen.lab.study.spec.expression import Expression

VALUES = {"a": 2, "b": 3, "word": "fp8", "unset": None, "on": True}


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("a * b == 6", True),
        ("a + b - 1 == 4 and b / a == 1.5", True),
        ("b // a == 1 and b % a == 1", True),
        ("-a < 0", True),
        ("1 < a < b", True),
        ("1 < a > b", False),
        ("a != 2 or b >= 3", True),
        ("a <= 1 or b < 3", False),
        ("not on", False),
        ("word == 'fp8' and word in ['fp8', 'awq']", True),
        ("a not in (2, 3)", False),
        ("(unset or 1) * a == 2", True),
        ("unset == None", True),
        ("never_named == None", True),
        ("True and not False", True),
    ],
)
def test_conditions_mean_what_they_mean_in_python(text: str, holds: bool) -> None:
    assert Expression(text).holds(VALUES) is holds


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "a.real == 2",
        "a[0] == 2",
        "(lambda: a)()",
        "[x for x in (1, 2)]",
        "{1: 2}",
        "a ** b == 8",
        "a << b",
        "a if b else 1",
        "f'{a}'",
        "(c := a) == 2",
        "a is b",
        "~a",
        "b'bytes'",
        "1j",
        "...",
        "a ==",
        "a; b",
        "",
        "\0",
        "(" * 400,
        "a or " * 200 + "a",
    ],
)
def test_every_other_form_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"not supported|not an expression|longer"):
        Expression(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("unset * a > 1", "unset is not set"),
        ("unset < 1", "unset is not set"),
        ("word * a == 'fp8fp8'", "'fp8' is not a number"),
        ("word < a", "'fp8' and 2 cannot be compared"),
        ("a / 0 == 1", "it divides by 0"),
        ("a % 0 == 1", "it divides by 0"),
        ("a / 0 == 1 and unset", "it divides by 0"),
        ("a in 3", "2 and 3 cannot be compared"),
    ],
)
def test_values_of_no_use_where_they_stand_are_named(text: str, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        Expression(text).holds(VALUES)


def test_words_are_not_multiplied() -> None:
    with pytest.raises(BadInput, match="not a number"):
        Expression("'x' * 10000000000 == a").holds(VALUES)


def test_its_names_are_known() -> None:
    names: Any = Expression("a * b > 1 and a in [c]").names
    assert names == {"a", "b", "c"}
