"""The tables of docs/result.md, made of the schema; `python -m tests.report.schema.document`
writes them.
"""

from collections.abc import Iterator
from typing import Any

from tests.helpers.documents import between, table
from tests.helpers.result_schema import SCHEMA
from tests.helpers.source import ROOT

DOCUMENT = ROOT / "docs/result.md"
BEGIN, END = (
    "<!-- keys: written by python -m tests.report.schema.document -->",
    "<!-- end of keys -->",
)
DEFS = SCHEMA["$defs"]
MERGED = "numbers"  # a part of `run` and of `brief`, told once
HEAD = ("key", "type", "meaning")


def written() -> str:
    return "\n\n".join(filter(None, map(section, DEFS)))


def section(name: str) -> str:
    node = DEFS[name]
    rows = list(keys(node))
    lines = [f"## {name}", node["description"]]
    if node.get("$ref"):
        lines.append(f"It has the keys of [{MERGED}](#{MERGED}), and:")
    return "\n\n".join([*lines, table(HEAD, rows)] if rows else lines)


def keys(node: dict[str, Any], before: str = "") -> Iterator[tuple[str, str, str]]:
    """A row for each key, those of objects that have no section of their own among them."""
    alike = one_for_all(node)
    if alike and len(node["properties"]) > 3:
        names = ", ".join(f"`{name}`" for name in node["properties"])
        yield f"`{before}NAME`", alike, f"Of each NAME: {names}."
        return
    for name, value in node.get("properties", {}).items():
        needed = node.get("required", ())
        shown = f"`{before}{name}`" + (
            "" if name in needed or node.get("$ref") or not needed else " (may be missing)"
        )
        yield shown, kind(value), meaning(value)
        inner = value["items"] if value.get("type") == "array" else value
        yield from keys(inner, f"{before}{name}{'[]' if inner is not value else ''}.")
    for pattern, value in node.get("patternProperties", {}).items():
        yield f"`{pattern.strip('^$').replace('[0-9.e-]+', 'N')}`", kind(value), meaning(value)


def one_for_all(node: dict[str, Any]) -> str | None:
    """The kind of all keys of an object, where they are told apart by nothing but their names."""
    values = list(node.get("properties", {}).values())
    same = values and all(value == values[0] for value in values) and "description" not in values[0]
    return kind(values[0]) if same else None


def meaning(value: dict[str, Any]) -> str:
    said: str = value.get("description") or resolved(value)["description"]
    return said


def resolved(value: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = SCHEMA
    for part in value["$ref"].removeprefix("#/").split("/"):
        found = found[part]
    return found


def kind(value: dict[str, Any]) -> str:
    """What a value may be, in words."""
    if "$ref" in value:
        name = value["$ref"].split("/")[2]
        return f"[{name}](#{name})" if value["$ref"].count("/") == 2 else kind(resolved(value))
    if "enum" in value:
        return " or ".join(f"`{each}`" for each in value["enum"])
    if "const" in value:
        return f"`{str(value['const']).lower()}`"
    for several in ("oneOf", "anyOf"):
        if several in value:
            return " or ".join(map(kind, value[several]))
    kinds = [value["type"]] if isinstance(value.get("type"), str) else value.get("type", ["any"])
    return " or ".join(of_type(each, value) for each in kinds)


def of_type(name: str, value: dict[str, Any]) -> str:
    if name == "array" and value.get("items"):
        return f"array of {kind(value['items'])}"
    further = value.get("additionalProperties")
    if name == "object" and isinstance(further, dict) and further:
        return f"object of {kind(further)}"
    return name


if __name__ == "__main__":
    between(DOCUMENT, BEGIN, written(), END)
