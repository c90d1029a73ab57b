"""The facts of a store have names for readers, on pages and in errors."""

import pytest

from loadgen.errors import Place
from loadgen.lab.study.execute.facts import GROUNDS, fact_name


@pytest.mark.parametrize(
    ("at", "name"),
    [
        (("host", "gpus"), "accelerators"),
        (("builds", "vllm"), "version of vllm"),
        (("data", "chat"), "data of chat"),
        (("data", "chat", "sha256"), "data of chat, SHA-256"),
    ],
)
def test_a_fact_is_named_in_words(at: Place, name: str) -> None:
    assert fact_name(at) == name


def test_whatever_may_change_between_runs_has_a_name() -> None:
    assert all(fact_name((ground,)) for ground in GROUNDS)
