"""The lists of docs/result.md, made of the schema; `python -m tests.report.schema.document`
writes them.
"""

import re
from collections.abc import Iterator
from itertools import groupby
from textwrap import fill
from typing import Any

from msgspec.structs import fields

from loadgen.report.result.sglang_numbers import SglangNumbers
from tests.helpers.documents import between, list_item
from tests.helpers.result_schema import SCHEMA
from tests.helpers.source import ROOT

DOCUMENT = ROOT / "docs/result.md"
BEGIN, END = (
    "<!-- keys: written by python -m tests.report.schema.document -->",
    "<!-- end of keys -->",
)
UNBROKEN = {"break_long_words": False, "break_on_hyphens": False}
DEFS = SCHEMA["$defs"]
LEVELS = 2  # types that far below a run or a series have a section; the schema alone has the others
SGLANG = {field.name for field in fields(SglangNumbers)}  # the schema alone says what they mean
MERGED = "numbers"  # a part of `run` and of `brief`, described once
# What null says of most values, as the page says once for all.
UNKNOWN = re.compile(
    r"; null(?::| where| without| if) (?:unknown|unknown, or none|none[^;.]*|no [^;.]*|"
    r"nothing[^;.]*|not (?:needed|measured)[^;.]*|there (?:is|was|are) none|"
    r"(?:it|they|the run|the server) ha(?:s|ve) none|"
    r"it (?:is unknown|did not[^;.]*|does not apply[^;.]*|reported none|was never reported)|"
    r"it|limits|--[a-z-]+|neither|(?:the system|the GPU) does not report [^;.]*|"
    r"they do not count them|some are unknown|that is unknown for some|either is null)(?=\.$)"
)
# What the page says once for all, too.
USUAL = re.compile(
    r",? on the clock of `latency_from`(?=[,.;])|"
    r"(?:; missing|\. Missing) where answers (?:have no tokens|have tokens|come in one piece)"
    r"(?=\.$)"
)
# What tells apart rows that are told as one.
STATISTIC = re.compile("^(?:Mean|Median|Standard deviation), ms: ")
OWN_NAME = re.compile("^Of `[a-z0-9_]+`[.]$")
VLLMS_NAME = re.compile("^As `[a-z0-9_]+`[.]$")
CLOCK = re.compile(", from (?:due|sent)[.]$")
Row = tuple[str, str, str]


def written() -> str:
    """Every type under a heading of its own. A key with the type and the meaning that it has in an
    earlier type is named there alone.
    """
    first: dict[Row, str] = {}
    return "\n\n".join(section(name, first) for name in DEFS if name in SHOWN)


def levels() -> dict[str, int]:
    """Count by how many other types each type is below a run or a series, at the least."""
    found, todo = {}, [(name, 0) for name in named({**SCHEMA, "$defs": {}})]
    for name, level in todo:  # it grows
        if name not in found:
            found[name] = level
            todo += [(other, level + 1) for other in named(DEFS[name])]
    return found


def named(node: dict[str, Any]) -> list[str]:
    """The types to which a part of the schema refers."""
    return re.findall(r"'#/\$defs/(\w+)'", str(node))


SHOWN = {name for name, level in levels().items() if level <= LEVELS}


def section(name: str, first: dict[Row, str]) -> str:
    node = DEFS[name]
    repeated: dict[str, list[str]] = {}
    items = []
    sglangs = [row[0] for row in keys(node) if name == "run" and row[0].strip("`") in SGLANG]
    for row in folded(row for row in keys(node) if row[0] not in sglangs):
        told = first.setdefault(row, name)
        if told == name:
            items.append(item(*row))
        else:
            repeated.setdefault(told, []).append(row[0])
    if sglangs:
        items.append(list_item(f"SGLang's keys: {', '.join(sglangs)}."))
    lines = [f"## {name}", fill(node["description"], 120, **UNBROKEN)]
    if node.get("$ref"):
        lines.append(f"It has the keys of [{MERGED}](#{MERGED}), and:")
    alike = [
        list_item(f"As in [{other}](#{other}): {', '.join(names)}.")
        for other, names in repeated.items()
    ]
    return "\n\n".join([*lines, "\n".join([*items, *alike])] if items or alike else lines)


def item(key: str, type_name: str, about: str) -> str:
    """A number has its key alone, as has a boolean that says whether something is so; and a
    question mark if it may be null.
    """
    plain = re.sub("^(?:optional )?(?:integer|number)", "", type_name)
    if about.startswith("Whether "):
        plain = plain.removeprefix("boolean")
    shown = f"{key}{plain}" if plain in ("", "?") else f"{key} ({type_name})"
    return list_item(f"{shown}: {UNKNOWN.sub('', USUAL.sub('', about))}")


def folded(rows: Iterator[Row]) -> Iterator[Row]:
    """The rows: mean, median and standard deviation of a latency in one, and both clocks."""
    for (type_name, about), alike in groupby(rows, lambda row: (row[1], _common(row[2]))):
        several = list(alike)
        if len(several) == 1:
            yield several[0]
        else:
            yield ", ".join(key for key, _, _ in several), type_name, about


def _common(about: str) -> str:
    text = UNKNOWN.sub("", about)
    if STATISTIC.match(text):
        text = f"{STATISTIC.sub('', text).removesuffix('.')}, ms."
    text = OWN_NAME.sub("Of the distribution of this name.", text)
    text = VLLMS_NAME.sub("As vLLM's key for the same.", text)
    text = CLOCK.sub(", from due, and from sent.", text)
    return f"{text[0].upper()}{text[1:]}"


def keys(node: dict[str, Any], before: str = "") -> Iterator[Row]:
    """A row for each key, those of objects that have no section of their own among them."""
    alike = one_for_all(node)
    if alike and len(node["properties"]) > 3:
        names = ", ".join(f"`{name}`" for name in node["properties"])
        yield f"`{before}NAME`", alike, f"Of each NAME: {names}."
        return
    for name, value in node.get("properties", {}).items():
        needed = node.get("required", ())
        shown = f"`{before}{name}`"
        optional = "" if name in needed or node.get("$ref") or not needed else "optional "
        yield shown, f"{optional}{kind(value)}", meaning(value)
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
    """What a value may be, in words; with a question mark, also null."""
    if "$ref" in value:
        name = value["$ref"].split("/")[2]
        if value["$ref"].count("/") > 2:
            return kind(resolved(value))
        return f"[{name}](#{name})" if name in SHOWN else name
    if "enum" in value:
        return ", ".join(f"`{each}`" for each in value["enum"])
    if "const" in value:
        return f"`{str(value['const']).lower()}`"
    for several in ("oneOf", "anyOf"):
        if several in value:
            return either(list(map(kind, value[several])))
    kinds = [value["type"]] if isinstance(value.get("type"), str) else value.get("type", ["any"])
    return either([of_type(each, value) for each in kinds])


def either(kinds: list[str]) -> str:
    """One of several kinds."""
    others = [each for each in kinds if each != "null"]
    if not others or len(others) == len(kinds):
        return " or ".join(kinds)
    return " or ".join(others) + "?"


def of_type(name: str, value: dict[str, Any]) -> str:
    if name == "array" and value.get("items"):
        return f"[{kind(value['items'])}]"
    further = value.get("additionalProperties")
    if name == "object" and isinstance(further, dict) and further:
        return f"{{{kind(further)}}}"
    return name


if __name__ == "__main__":
    between(DOCUMENT, BEGIN, written(), END)
