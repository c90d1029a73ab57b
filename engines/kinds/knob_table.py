"""Knob table: the forms in which one engine takes each knob, and the checks of a user's own
flags against them.
"""

import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from loadgen.engines.kinds.flag_syntax import FlagSyntax, is_flag
from loadgen.engines.kinds.knob_forms import CommandParts, KnobForm
from loadgen.engines.kinds.knobs import KNOBS
from loadgen.errors import BadInput

PLACEMENT = ("host", "port", "model")  # written like knobs, but chosen by the launcher


@dataclass(frozen=True, eq=False)
class KnobTable:
    """How one engine takes the knobs.

    Attributes:
        engine: The engine's name.
        forms: Knob to its forms; the first one that a version supports is used. `host`, `port` and
            `model` stand here too.
        nearest: Knobs that the engine does not have, to the nearest setting that it has.
        underscores, dotted, abbreviates, apart: As in `FlagSyntax`.
    """

    engine: str
    forms: Mapping[str, tuple[KnobForm, ...]]
    nearest: Mapping[str, str] = field(default_factory=dict)
    underscores: bool = False
    dotted: bool = False
    abbreviates: bool = False
    apart: tuple[str, ...] = ()

    @property
    def knobs(self) -> list[str]:
        """Names of the knobs that the engine has."""
        return [name for name in KNOBS if name in self.forms]

    def own_names(self, version: str | None) -> dict[str, str]:
        """Return the knobs that a version supports, each with the engine's own name; None: the
        newest version.
        """
        supported = {
            name: [form for form in self.forms[name] if form.supported_by(version)]
            for name in self.knobs
        }
        return {name: forms[0].label.replace("`", "") for name, forms in supported.items() if forms}

    @cached_property
    def version_dependent(self) -> bool:
        """Whether any form depends on the engine's version."""
        forms = itertools.chain.from_iterable(self.forms.values())
        return any(form.since or form.until for form in forms)

    @cached_property
    def flag_syntax(self) -> FlagSyntax:
        """How the engine's command line is parsed."""
        names: set[str] = set()
        aliases: dict[str, str] = {}
        for form in itertools.chain.from_iterable(self.forms.values()):
            for name, others in form.flags().items():
                names.add(name)
                aliases |= dict.fromkeys(others, name)
        return FlagSyntax(
            aliases, self.underscores, self.dotted, self.abbreviates, frozenset(names), self.apart
        )

    def check(self, knobs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the knobs with checked values, in the order of `KNOBS`.

        Raises:
            BadInput: The engine does not have one of the knobs, or a value cannot be used.
        """
        for name in knobs:
            if name in PLACEMENT:
                raise BadInput(name, "the launcher sets it", "leave it out")
            if name in self.nearest:
                raise BadInput(
                    name,
                    f"{self.engine} has no such setting",
                    f"the nearest is {self.nearest[name]}",
                )
            if name not in self.forms:
                raise BadInput(
                    name, f"{self.engine} has no such knob", f"use one of {', '.join(self.knobs)}"
                )
        return {name: KNOBS[name].check(knobs[name]) for name in KNOBS if name in knobs}

    def render(self, knobs: Mapping[str, Any], version: str | None) -> CommandParts:
        """Return the words, variables and config entries for checked knobs and placement settings.

        Args:
            knobs: Name to value.
            version: The engine's version; None: the newest.

        Raises:
            BadInput: The version has no form of one of the knobs, or its value cannot be written.
        """
        parts = CommandParts()
        for name, value in knobs.items():
            form = next((form for form in self.forms[name] if form.supported_by(version)), None)
            if form is None:
                raise BadInput(name, *self._unsupported(self.forms[name], version))
            if (converted := form.convert(value, knobs)) is not None:
                form.add(converted, parts)
        return parts

    def check_raw_flags(
        self, raw: Sequence[str], knobs: Collection[str], version: str | None
    ) -> None:
        """Check the user's own flags.

        Args:
            raw: Flags and values, as on the command line.
            knobs: Names of the knobs that are set too.
            version: As in `render`.

        Raises:
            BadInput: A flag sets the same thing as a knob or as the launcher, or the version does
                not have it.
        """
        for flag in self.raw_flags(raw):
            owners: list[KnobForm] = []
            for name, forms in self.forms.items():
                with_flag = [form for form in forms if flag in form.flags()]
                owners += with_flag
                if not with_flag:
                    continue
                if name in PLACEMENT:
                    raise BadInput(flag, f"the launcher sets the {name}", "leave the flag out")
                if name in knobs:
                    raise BadInput(
                        flag,
                        f"it sets the same thing as the knob {name}",
                        f"use one of them, best {name}",
                    )
            if owners and not any(form.supported_by(version) for form in owners):
                raise BadInput(flag, *self._unsupported(owners, version))

    def raw_flags(self, raw: Sequence[str]) -> list[str]:
        """Return the names of the user's own flags, as loadgen writes them.

        Raises:
            BadInput: A word cannot stand on a command line, or a value follows no flag.
        """
        for word in raw:
            if not isinstance(word, str) or "\0" in word:
                raise BadInput(
                    "raw",
                    f"{word!r} cannot stand on a command line",
                    "give flags and values as text",
                )
        if raw and not is_flag(raw[0]):
            raise BadInput(
                "raw", f"{raw[0]!r} follows no flag", "give flags, each followed by its values"
            )
        return [name for name, *_ in self.flag_syntax.parse(raw)[1:]]

    def _unsupported(self, forms: Sequence[KnobForm], version: str | None) -> tuple[str, str]:
        labels = "; ".join(form.label_with_versions for form in forms)
        return (
            f"{self.engine} {version or '(newest version)'} does not support it",
            f"leave it out, or use a version that has {labels}",
        )
