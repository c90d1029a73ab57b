"""FlagSyntax: two commands that say the same are equal, however they are written."""

import shlex

import pytest

from loadgen.engines.kinds import sglang, trtllm, vllm
from loadgen.engines.kinds.flag_syntax import FlagSyntax, is_flag
from loadgen.engines.kinds.knob_table import KnobTable


@pytest.mark.parametrize(
    ("table", "one", "other"),
    [
        (vllm.TABLE, "vllm serve M -tp 4", "vllm serve M --tensor-parallel-size=4"),
        (vllm.TABLE, "--max_num_seqs 4 --enforce-eager", "--enforce-eager --max-num-seqs 4"),
        (vllm.TABLE, "--max-model 8", "--max-model-len 8"),
        (
            vllm.TABLE,
            """-sc '{"b": 1, "a": [1, 2]}'""",
            """--speculative-config='{"a":[1,2],"b":1}'""",
        ),
        (
            sglang.TABLE,
            "python3 -m x --tp 2 --model M",
            "python3 -m x --model-path M --tensor-parallel-size 2",
        ),
        (trtllm.TABLE, "trtllm-serve M --tp_size 2", "trtllm-serve M --tensor_parallel_size=2"),
    ],
)
def test_commands_that_say_the_same_are_equal(table: KnobTable, one: str, other: str) -> None:
    first, second = (table.flag_syntax.normalize(shlex.split(text)) for text in (one, other))
    assert first == second


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("vllm serve M", "vllm serve N"),
        ("--seed 1", "--seed 2"),
        ("--enable-prefix-caching", "--no-enable-prefix-caching"),
        ("--a 1 2", "--a 2 1"),
        ("-tp 4", "-pp 4"),
        ("""-sc {"a":1}""", """-sc {"a":2}"""),
    ],
)
def test_commands_that_say_something_else_are_not(one: str, other: str) -> None:
    assert vllm.TABLE.flag_syntax.normalize(one.split()) != vllm.TABLE.flag_syntax.normalize(
        other.split()
    )


def test_click_takes_no_beginning_for_a_flag() -> None:
    assert trtllm.TABLE.flag_syntax.canonical_name("--max_num") == "--max_num"


def test_a_beginning_that_may_mean_two_flags_is_left_as_it_is() -> None:
    assert vllm.TABLE.flag_syntax.canonical_name("--max-num") == "--max-num"


def test_negative_numbers_are_values() -> None:
    assert FlagSyntax().parse(["--a", "-1", "-.5", "-b", "-"]) == [
        ("",),
        ("--a", "-1", "-.5"),
        ("-b", "-"),
    ]
    assert not is_flag("-1")
    assert is_flag("-ngl")


def test_invalid_json_values_are_compared_as_text() -> None:
    assert FlagSyntax().normalize(["--a", "{x"]) == (("",), ("--a", "{x"))
