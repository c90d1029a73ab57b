"""Study text: a study as YAML that a person goes on to edit."""

import re
import textwrap
from typing import Any

import yaml

MAX_NAME = 60  # characters


def given(**values: Any) -> dict[str, Any]:
    """Return the values that are neither None nor empty."""
    return {name: value for name, value in values.items() if value not in (None, {}, [])}


def name_of(text: str) -> str:
    """Return a text as a name in a study."""
    words = " ".join(re.sub(r"[/`*:#\"'{}]", " ", text).split())
    return textwrap.shorten(words, MAX_NAME, placeholder="") or words[:MAX_NAME]


def yaml_line(key: str, value: Any, depth: int = 0, check: str = "") -> str:
    """Return a key with its value on one line.

    Args:
        key: The key.
        value: The value.
        depth: How deep the key stands.
        check: What a person must check; empty: nothing.
    """
    comment = f"  # CHECK: {check}" if check else ""
    return f"{'  ' * depth}{_flow(key)}: {_flow(value)}{comment}\n"


def _flow(value: Any) -> str:
    text = yaml.safe_dump(
        value, default_flow_style=True, width=10**6, sort_keys=False, allow_unicode=True
    )
    return text.removesuffix("...\n").strip()


def parsed(text: str) -> Any:
    """Return a value as YAML reads it."""
    return yaml.safe_load(text)
