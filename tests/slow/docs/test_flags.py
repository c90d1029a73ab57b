"""docs/flags.md lists every flag of the parser; those absent from `vllm bench serve` are bold."""

import dataclasses
import re

from loadgen.config.option import flag
from loadgen.config.settings import RunSettings
from tests.helpers.documents import found_between
from tests.integration.commands.migrating import releases
from tests.slow.docs.flag_table import BEGIN, DOCUMENT, END, flag_lists


def test_the_lists_are_what_the_settings_say() -> None:
    assert found_between(DOCUMENT, BEGIN, END).strip() == flag_lists(), (
        "python -m tests.slow.docs.flag_table"
    )


def test_flags_of_its_own_are_bold() -> None:
    theirs = set().union(*releases("vllm").values())
    own = {flag(field.name) for field in dataclasses.fields(RunSettings)} - theirs
    bold = set(
        re.findall(r"--[a-z-]+", " ".join(re.findall(r"^- \*\*(.+?)\*\*", flag_lists(), re.M)))
    )
    assert own - bold == set()
    assert bold & theirs == set()
