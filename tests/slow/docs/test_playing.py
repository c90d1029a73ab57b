"""A page is played as written: in order, to its end, with servers where it asks for them."""

from pathlib import Path

import pytest

from tests.helpers.source import ROOT
from tests.slow.docs.blocks import Block
from tests.slow.docs.playing import MAX_PROMPTS, Play, hub_cache

PAGE = ROOT / "docs" / "none.md"


def block(text: str, language: str = "bash", **marks: str) -> Block:
    return Block(
        PAGE, 1, language, text, {name.replace("_", " "): value for name, value in marks.items()}
    )


@pytest.fixture
def play(tmp_path: Path) -> Play:
    (tmp_path / "folder").mkdir()
    return Play(tmp_path / "folder", hub_cache(tmp_path / "cache"))


def test_a_command_that_fails_is_told_with_its_place_and_its_output(play: Play) -> None:
    with pytest.raises(
        AssertionError, match=r"docs/none.md:1: exit code 2, not 0\n(?s:.*)--rat: unknown"
    ):
        play.block(block("loadgen run --rat 3\n"))


def test_a_command_in_the_middle_of_a_block_that_fails_is_no_less(play: Play) -> None:
    with pytest.raises(AssertionError, match="exit code 1"):
        play.block(block("false | true\ntrue\n"))


def test_another_exit_code_is_what_a_page_says(play: Play) -> None:
    play.block(block("loadgen run --rat 3\n", exit="2"))
    with pytest.raises(AssertionError, match="exit code 0, not 2"):
        play.block(block("true\n", exit="2"))


def test_blocks_with_unmet_needs_and_text_are_not_run(play: Play) -> None:
    play.block(block("false\n", needs="accelerator"))
    play.block(block("false\n", run_by="tests/none.py"))
    play.block(block("false\n", "text"))


def test_a_file_is_there_for_the_blocks_after_it(play: Play) -> None:
    play.block(block("rate: 3\n", "yaml", file="run.yaml"))
    play.block(block("grep -q 'rate: 3' run.yaml\n"))


@pytest.mark.parametrize("language", ["yaml", "json", "toml"])
def test_block_that_does_not_fit_its_fence_fails(play: Play, language: str) -> None:
    with pytest.raises(AssertionError, match=f"no {language}"):
        play.block(block("{[\n", language))


def test_python_may_await_and_go_on_where_it_left_off(play: Play) -> None:
    play.block(block("import asyncio\nfound = 3\n", "python"))
    play.block(block("await asyncio.sleep(0)\nassert found == 3\n", "python", continues=""))
    with pytest.raises(AssertionError, match="NameError"):
        play.block(block("found\n", "python"))


def test_python_that_defines_tests_is_tested(play: Play) -> None:
    with pytest.raises(AssertionError, match="1 failed"):
        play.block(block("def test_it():\n    assert False\n", "python"))


def test_a_server_is_there_where_a_page_names_one_and_has_started_none(play: Play) -> None:
    with play:
        play.block(
            block(
                "loadgen run --base-url http://127.0.0.1:8000 --rate 20 --num-prompts 1000 --json "
                "> r.json\n"
            )
        )
        play.block(block(f"grep -q '\"completed\":{MAX_PROMPTS},' r.json\n"))


def test_a_server_of_the_page_goes_on_until_the_page_has_ended(play: Play) -> None:
    flags = "--port 8001 --plan reset=1.0"
    ask = "import sys, urllib.request\nurllib.request.urlopen('http://127.0.0.1:8001/counts')\n"
    with play:
        play.block(block(f"python -m loadgen.testing.faulty {flags}\n", background=""))
        play.block(block(ask, "python"))
    with pytest.raises(AssertionError, match="Connection refused"):
        play.block(block(ask.replace(":8001", f":{play._port('8001')}"), "python"))


def test_a_server_that_does_not_listen_is_told(play: Play) -> None:
    with play, pytest.raises(AssertionError, match=r"nothing listens\n(?s:.*)--plan"):
        play.block(
            block("python -m loadgen.testing.faulty --port 8001 --plan nonsense\n", background="")
        )
