"""Scripts are read as bash reads them; what it reads otherwise than it looks is a flaw of the
command.
"""

from pathlib import Path

import pytest

from loadgen.lab.audit.command import ServingCommand, commands
from loadgen.lab.audit.shell import shell_commands
from tests.helpers.audited_pages import block, fence, found, only


def only_command(text: str) -> ServingCommand:
    (command,) = commands(text, 0)
    return command


def test_a_flag_behind_a_line_without_backslash_never_reaches_the_command() -> None:
    text = "vllm serve M \\\n  -tp 8\n  --a 1 \\\n  --b 2\n"
    command = only_command(text)
    assert dict(command.flags) == {"tp": "8", "a": "1", "b": "2"}  # as it was meant
    (flaw,) = command.flaws
    assert flaw.text.split() == ["--a", "1", "--b", "2"]
    assert text[flaw.at :].startswith("--a 1")


@pytest.mark.parametrize(
    "text",
    [
        "vllm serve M \\\n  --a 1\n",
        "--a=1\n--b=2\n",  # parameters of a form, for which no shell is needed
        "vllm serve M \\ --a 1 \\ --b 2",  # of a page whose lines were joined
        "$ vllm serve M \\\n  --a 1",
        "# a comment\nvllm serve M --a 1",
    ],
)
def test_whole_commands_and_parameter_lists_have_no_flaw(text: str) -> None:
    assert only_command(text).flaws == ()


def test_a_space_behind_a_backslash_ends_the_command() -> None:
    (flaw,) = only_command("vllm serve M \\ \n  --a 1\n").flaws
    assert flaw.text == "--a 1"


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ('vllm serve M --c {"a":"b","n":1}', "splits it into 2 words, `a:b n:1`"),
        ('vllm serve M --c={"a":1}', "takes its quotes, `{a:1}`"),
    ],
)
def test_json_without_quotes_is_read_as_something_else(text: str, part: str) -> None:
    command = only_command(text)
    (flaw,) = command.flaws
    assert part in flaw.why
    assert command.flags["c"].startswith('{"a":')


@pytest.mark.parametrize(
    "text", ["vllm serve M --c '{\"a\": 1}'", '--c={"a":"b","n":1}', "vllm serve ${MODEL} --a 1"]
)
def test_json_in_quotes_and_in_parameter_lists_is_whole(text: str) -> None:
    assert only_command(text).flaws == ()


def test_an_array_needs_no_backslash_and_its_words_reach_the_command() -> None:
    text = "ARGS=(\n  --a 1  # why\n  --b 'x y'\n)\nvllm serve M \"${ARGS[@]}\" --c\n"
    command = only_command(text)
    assert dict(command.flags) == {"a": "1", "b": "x y", "c": ""}
    assert command.flaws == ()
    assert text[command.at :].startswith("vllm serve")


def test_variables_belong_to_the_command_behind_them() -> None:
    (command,) = shell_commands("export A=1\nB='x y' vllm serve M\n", 0)
    assert command.env == {"A": "1", "B": "x y"}
    assert command.words == ("vllm", "serve", "M")


def test_a_serving_script_that_only_sets_variables_starts_nothing(tmp_path: Path) -> None:
    page = f'??? info "Serving script"\n{fence("export ENGINE_X=1", "bash")}\n{fence(block())}'
    finding = only(found(tmp_path, page), "shell")
    assert (finding.says, finding.note) == ("`export ENGINE_X=1`", False)
    assert found(tmp_path, page.replace("Serving script", "Preparation")) == []
