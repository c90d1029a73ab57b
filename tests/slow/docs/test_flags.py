"""docs/flags.md lists every flag of the parser, with those absent from `vllm bench serve` apart."""

import dataclasses
import re

from loadgen.cli.flags import run_parser
from loadgen.config.option import flag
from loadgen.config.settings import RunSettings
from tests.helpers.documents import found_between
from tests.integration.commands.migrating import releases
from tests.slow.docs.flag_table import BEGIN, DOCUMENT, END, flag_lists


def test_the_lists_are_what_the_settings_say() -> None:
    assert found_between(DOCUMENT, BEGIN, END).strip() == flag_lists(), (
        "python -m tests.slow.docs.flag_table"
    )


def test_every_flag_of_its_own_is_told_of_apart() -> None:
    theirs = set().union(*releases("vllm").values())
    ours = {flag(field.name) for field in dataclasses.fields(RunSettings)} - theirs
    listed = DOCUMENT.read_text().partition("\n## loadgen's own")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| [^|]+ \| ([^|]*`--[^|]*) \|", listed, re.MULTILINE)
    told = set(re.findall(r"--[a-z-]+", " ".join(cells)))
    assert ours - told == set()
    assert told <= set(run_parser()._option_string_actions)
