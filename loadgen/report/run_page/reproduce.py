"""Reproduce: the command that repeats the run, and tables of its provenance."""

import dataclasses
import json
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from loadgen.config.option import OUTPUT, flag
from loadgen.config.serialize import flags, restored
from loadgen.config.settings import RunSettings
from loadgen.report.html import Block, Code, Note, Paragraph, Span, Table, Tone
from loadgen.report.result.fields import to_json_values
from loadgen.report.result.provenance import Provenance
from loadgen.util.redaction import KEY_VARIABLE, MARK

# Of the settings that say what is reported and kept, those that change what a report says; the others name files.
KEPT_OUTPUT_SETTINGS = ("percentile_metrics", "metric_percentiles", "label", "metadata")
PARTS = {
    "asked": "Settings that were given",
    "settings": "All settings",
    "seeds": "Seeds",
    "prompts": "Prompts",
    "schedule": "Schedule",
    "engine": "Engine",
    "machine": "Machine",
    "versions": "Versions",
}


def command_block(provenance: Provenance) -> Iterator[Block]:
    """Write the command that repeats the run, without secrets.

    Args:
        provenance: The provenance of the result.
    """
    yield Code("\n".join([*_comments(provenance.asked), command(provenance.asked)]), "bash", copyable=True)


def command(asked: Mapping[str, Any]) -> str:
    """Make the `loadgen run` command of the given settings, without credentials and output files.

    Args:
        asked: The settings that differ from the defaults, as provenance has them.
    """
    settings = restored(asked)
    fields = (field for field in dataclasses.fields(RunSettings) if field.metadata["group"] == OUTPUT)
    unnamed: dict[str, Any] = {field.name: field.default for field in fields if field.name not in KEPT_OUTPUT_SETTINGS}
    headers = tuple(header.replace(MARK, "@FILE") for header in settings.header)
    return shlex.join(["loadgen", "run", *flags(settings.replace(**unnamed, api_key=None, header=headers))])


def _comments(asked: Mapping[str, Any]) -> Iterator[str]:
    if asked.get("api_key"):
        yield f"# {KEY_VARIABLE} must hold the API key."
    if asked.get("header"):
        yield f"# FILE must contain the value of {flag('header')}: one file for each header."
    if any(MARK in json.dumps(asked[name]) for name in ("base_url", "engine_arg") if name in asked):
        yield f"# Put what was left out in place of {MARK}."


def provenance_tables(provenance: Provenance) -> Iterator[Block]:
    """Write each part of the provenance as a folded table."""
    saved = to_json_values(provenance)
    for name, title in PARTS.items():
        found = saved.get(name)
        if found:
            rows = ((what, Span(_value(value), Tone.CODE)) for what, value in found.items())
            yield Note("note", title, (Table.of(("", ""), rows),), folded=True)
        elif name == "asked":
            yield Paragraph.of("All settings are the defaults.")


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
