"""Benchmark profiles of GPUStack: YAML files with keys of their own.

A file holds one profile, or, like the file that GPUStack ships, a list `profiles` of named ones.
"""

import difflib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadgen.errors import BadInput, within

IGNORED = {"name", "description", "dataset_source"}  # keys of a listed profile that set nothing
UNLIMITED = -1  # requests per second


@dataclass(frozen=True, slots=True)
class Key:
    """A key of a profile.

    Attributes:
        setting: The field of `RunSettings` that it sets.
        holds: Whether a value is valid.
        expected: The valid values, for people.
    """

    setting: str
    holds: Callable[[Any], bool]
    expected: str


def _whole_from(low: int) -> tuple[Callable[[Any], bool], str]:
    return lambda value: type(value) is int and value >= low, f"a whole number from {low}"


KEYS = {
    "dataset_name": Key(
        "dataset_name", lambda value: value in ("Random", "ShareGPT"), "Random or ShareGPT"
    ),
    "dataset_input_tokens": Key("random_input_len", *_whole_from(1)),
    "dataset_output_tokens": Key("random_output_len", *_whole_from(1)),
    "dataset_seed": Key("seed", *_whole_from(0)),
    "request_rate": Key(
        "request_rate", lambda value: type(value) in (int, float) and value > 0, "a number above 0"
    ),
    "total_requests": Key("num_prompts", *_whole_from(1)),
}
REMEDY = f"write a mapping of {', '.join(KEYS)}"


def read(path: Path, name: str | None = None) -> dict[str, Any]:
    """Read the fields of `RunSettings` that a profile sets.

    Args:
        path: The file.
        name: The profile, where the file lists several.

    Raises:
        BadInput: The file cannot be read, is not a YAML mapping, has no such profile, or one with
            an unknown key or a value out of range.
    """
    profile = content(path, name)
    with within(str(path)):
        return fields(profile)


def content(path: Path, name: str | None = None) -> dict[str, Any]:
    """Read a profile as it is written.

    Args:
        path: The file.
        name: The profile, where the file lists several.

    Raises:
        BadInput: The file cannot be read, is not a YAML mapping, or has no such profile.
    """
    import yaml  # slow to import

    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(str(path), f"cannot be read ({error})", "give a YAML file") from error
    except yaml.YAMLError as error:
        raise BadInput(
            str(path), f"is not YAML ({' '.join(str(error).split())})", REMEDY
        ) from error
    with within(str(path)):
        profile = _chosen(document, name)
    if not isinstance(profile, dict):
        raise BadInput(str(path), "is not a mapping", REMEDY)
    return profile


def fields(profile: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a profile to fields of `RunSettings`. A missing key, or null, leaves its setting
    alone.

    Raises:
        BadInput: It has an unknown key or a value out of range. Its field is the key.
    """
    if profile.get("auto_tune"):
        remedy = "use `loadgen benchmark-runner benchmark run --scenario`, or `loadgen search`"
        raise BadInput("auto_tune", "is a search, not a single run", remedy)
    settings: dict[str, Any] = {}
    for name, value in profile.items():
        if name in IGNORED:
            continue
        if name not in KEYS:
            near = difflib.get_close_matches(str(name), KEYS, n=1)
            raise BadInput(
                str(name),
                "unknown key of a profile",
                f"did you mean {near[0]}?" if near else REMEDY,
            )
        if value is None:
            continue
        key = KEYS[name]
        if name == "request_rate" and value == UNLIMITED:
            value = math.inf
        if not key.holds(value):
            raise BadInput(name, f"invalid value {value!r}", f"give {key.expected}")
        settings[key.setting] = float(value) if name == "request_rate" else value
    if "dataset_name" in settings:
        settings["dataset_name"] = settings["dataset_name"].lower()
    return settings


def _chosen(content: Any, name: str | None) -> Any:
    listed = content.get("profiles") if isinstance(content, dict) else None
    if not isinstance(listed, list):
        if name is not None:
            raise BadInput(
                "profiles",
                f"no profile is named {name!r}: the file has a single one",
                "leave #NAME out",
            )
        return content
    by_name = {str(profile.get("name")): profile for profile in listed if isinstance(profile, dict)}
    if name is None and len(by_name) == 1:
        return next(iter(by_name.values()))
    if name not in by_name:
        problem = "has several profiles" if name is None else f"no profile is named {name!r}"
        raise BadInput("profiles", problem, f"choose with FILE#NAME, from {', '.join(by_name)}")
    return by_name[name]
