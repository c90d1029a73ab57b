"""A data set of a test's own: the same prompt again and again."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from loadgen.workload.prompt import Prompt


@dataclass(frozen=True)
class Repeated:
    prompt: Prompt

    def prompts(self, count: int) -> Iterator[Prompt]:
        return itertools.repeat(self.prompt, count)

    def provenance(self) -> dict[str, Any]:
        return {"name": "repeated"}
