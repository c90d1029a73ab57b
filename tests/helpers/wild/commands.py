"""Wild commands: benchmark command lines found in public repositories, as they run here.

In `args` names, addresses, paths and lengths are replaced by small ones of ours: {port}, {out},
{tokenizer}, {files}.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from tests.helpers.source import ROOT

FILE = ROOT / "tests/data/wild_commands.json"
COMPAT = {"sglang": ("--compat", "sglang")}  # by tool; those of vLLM need none


@dataclass(frozen=True, slots=True)
class WildCommand:
    """One command.

    Attributes:
        tool: vllm, vllm-rs or sglang.
        kind: What it measures: text, image, audio, pooling or special.
        source: Where it was found.
        command: As it was found.
        args: Its arguments for a small run here.
    """

    tool: str
    kind: str
    source: str
    command: str
    args: tuple[str, ...]

    @classmethod
    def all(cls) -> "list[WildCommand]":
        """Read all of them."""
        return [cls(**row | {"args": tuple(row["args"])}) for row in json.loads(FILE.read_text())]

    def arguments(self, places: Mapping[str, object]) -> list[str]:
        """Return the words after `loadgen`, with each {name} replaced."""
        words = (
            re.sub(r"\{(port|out|tokenizer|files)\}", lambda found: str(places[found[1]]), w)
            for w in self.args
        )
        return ["run", *COMPAT.get(self.tool, ()), *words]

    @property
    def sends(self) -> bool:
        """Whether it sends requests; it may compare results, or only show the prompts."""
        return not {"--compare", "--dry-run"} & {*self.args}

    def value(self, flag: str) -> str | None:
        """Return the last value of a flag, spelled as here; None if it is not given."""
        found = None
        for word, after in pairwise((*self.args, "")):
            name, equals, value = word.partition("=")
            if name == flag:
                found = value if equals else after
        return found
