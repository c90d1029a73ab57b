"""The help of the whole command: what each part is for, also of those that other packages add."""

import sys
from importlib import metadata
from types import ModuleType

import pytest

from loadgen.cli.main import main
from tests.helpers import help_pages


def command(argv):
    """Serve tea. More about tea."""


@pytest.fixture
def added(monkeypatch):
    """Install commands by name, of which one is missing."""
    module = ModuleType("tea_shop")
    module.command = command
    monkeypatch.setitem(sys.modules, "tea_shop", module)
    points = metadata.EntryPoints(
        metadata.EntryPoint(name, f"tea_shop:{attribute}", "loadgen.commands")
        for name, attribute in (("tea", "command"), ("broken", "nothing"))
    )
    monkeypatch.setattr(metadata, "entry_points", lambda **selection: points.select(**selection))


def test_each_command_says_what_it_is_for(added, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "tea serve tea" in lines
    assert "broken (fails to load)" in lines
    assert not ended.value.code


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="argparse lays out options differently")
@pytest.mark.parametrize("name", help_pages.COMMANDS)
def test_a_help_page_is_the_golden_one(name):
    golden = (help_pages.FOLDER / f"help-{name}.txt").read_text()
    assert help_pages.page(name) == golden, "python -m tests.helpers.help_pages"
