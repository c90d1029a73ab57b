"""The base class of the models of a study file: unknown keys are refused, and errors have their place in the file."""

import difflib
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator
from pydantic_core import PydanticCustomError

from loadgen.errors import BadInput

At = tuple[str | int, ...]  # a place in a study file: keys, and positions in lists from 0


class AtFault(BadInput):
    """An error in a study file.

    Args:
        at: Its place.
        problem: What is wrong.
        remedy: What to write instead.
    """

    def __init__(self, at: Sequence[str | int], problem: str, remedy: str) -> None:
        super().__init__(".".join(map(str, at)), problem, remedy)
        self.at: At = tuple(at)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.at, self.problem, self.remedy)


class Strict(BaseModel):
    """A mapping with known keys and values of exact types."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _no_unknown_key(cls, given: Any) -> Any:
        if isinstance(given, dict):
            known = [field.alias or name for name, field in cls.model_fields.items()]
            for key in given:
                if key not in known:
                    remedy = suggestion(str(key), known) or f"use {', '.join(known)}"
                    raise PydanticCustomError("unknown_key", "unknown key", {"key": str(key), "remedy": remedy})
        return given


def suggestion(word: str, known: Sequence[str]) -> str:
    """Return "did you mean NAME?" for a similar known word; empty if there is none."""
    near = difflib.get_close_matches(word, known, 1)
    return f"did you mean {near[0]}?" if near else ""


def refused(problem: str, remedy: str) -> PydanticCustomError:
    """Return the error of a value that a validator refuses."""
    return PydanticCustomError("refused", "{problem}", {"problem": problem, "remedy": remedy})
