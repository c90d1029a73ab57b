"""Strict: models of what stands in a study file; nothing in it is ignored, and what is refused says where it stands."""

import difflib
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator
from pydantic_core import PydanticCustomError

from loadgen.errors import BadInput

At = tuple[str | int, ...]  # a place in a study file: keys, and positions in lists from 0


class AtFault(BadInput):
    """Something in a study file that cannot be used.

    Args:
        at: Where it stands.
        problem: What is wrong with it.
        remedy: What to write instead.
    """

    def __init__(self, at: Sequence[str | int], problem: str, remedy: str) -> None:
        super().__init__(".".join(map(str, at)), problem, remedy)
        self.at: At = tuple(at)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.at, self.problem, self.remedy)


class Strict(BaseModel):
    """A mapping with known keys, whose values are of their types as they stand."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _no_unknown_key(cls, given: Any) -> Any:
        if isinstance(given, dict):
            known = [field.alias or name for name, field in cls.model_fields.items()]
            for key in given:
                if key not in known:
                    remedy = suggestion(str(key), known) or f"use {', '.join(known)}"
                    raise PydanticCustomError("unknown_key", "is no key here", {"key": str(key), "remedy": remedy})
        return given


def suggestion(word: str, known: Sequence[str]) -> str:
    """ "did you mean NAME?", where a known word is near; else nothing."""
    near = difflib.get_close_matches(word, known, 1)
    return f"did you mean {near[0]}?" if near else ""


def refused(problem: str, remedy: str) -> PydanticCustomError:
    """A value that a validator finds unusable; to be raised."""
    return PydanticCustomError("refused", "{problem}", {"problem": problem, "remedy": remedy})
