"""Public names and signatures equal the recorded ones; changes are intended and in the
changelog.
"""

import ast
import difflib
from pathlib import Path

import loadgen
from tests.slow.packaging.public_api import RECORDED, lines


def test_names_and_signatures_are_those_that_were_recorded() -> None:
    recorded = RECORDED.read_text().splitlines()
    changed = [
        line
        for line in difflib.unified_diff(recorded, list(lines()), n=0, lineterm="")
        if line[:3] not in ("---", "+++")
    ]
    assert not changed, "\n".join(
        [
            "the public API is another one than was recorded:",
            *changed,
            "if that is meant: `python -m tests.slow.packaging.public_api`",
        ]
    )


def test_every_public_name_has_a_home_and_a_docstring() -> None:
    for name in loadgen.__all__:
        assert getattr(loadgen, name).__doc__, name


def test_a_type_checker_sees_every_public_name_where_it_lives() -> None:
    stub = Path(loadgen.__file__).with_suffix(".pyi")
    seen = {
        alias.asname: f"{node.module}.{alias.name}"
        for node in ast.parse(stub.read_text()).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen.pop("__version__") == "loadgen.version.__version__"
    assert seen == {name: f"loadgen.{home}.{name}" for name, home in loadgen._HOMES.items()}
