"""Profiles: GPUStack's benchmark profiles in YAML files, with its own keys.

A file holds one profile, or, as GPUStack ships them, several with names in a list `profiles`.
"""

import difflib
import math
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from loadgen.errors import BadInput

SETTINGS = {
    "dataset_name": "dataset_name",
    "dataset_input_tokens": "random_input_len",
    "dataset_output_tokens": "random_output_len",
    "dataset_seed": "seed",
    "request_rate": "request_rate",
    "total_requests": "num_prompts",
}
REMEDY = f"write a mapping of {', '.join(SETTINGS)}"
SAID = {"name", "description", "dataset_source"}  # of a profile in a list: they set nothing
UNLIMITED = -1  # requests per second


class Profile(BaseModel):
    """What GPUStack calls a benchmark profile; a key that is left out leaves its setting alone.

    Attributes:
        dataset_name: Where prompts come from.
        dataset_input_tokens: Tokens of a random prompt.
        dataset_output_tokens: Tokens of each answer to a random prompt.
        dataset_seed: Seed of everything drawn.
        request_rate: Requests per second.
        total_requests: Requests in all.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    dataset_name: Literal["Random", "ShareGPT"] | None = None
    dataset_input_tokens: int | None = Field(default=None, ge=1)
    dataset_output_tokens: int | None = Field(default=None, ge=1)
    dataset_seed: int | None = Field(default=None, ge=0)
    request_rate: float | None = Field(default=None, gt=0)
    total_requests: int | None = Field(default=None, ge=1)


def read(path: Path, name: str | None = None) -> dict[str, Any]:
    """Return the fields of `RunSettings` that a profile sets.

    Args:
        path: The file.
        name: Of the profile, where the file has several.

    Raises:
        BadInput: The file cannot be read, is no YAML mapping, has no such profile, or one with an unknown key or a
            value out of range.
    """
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(str(path), f"cannot be read ({error})", "give a YAML file") from error
    except yaml.YAMLError as error:
        raise BadInput(str(path), f"is not YAML ({' '.join(str(error).split())})", REMEDY) from error
    try:
        return fields(_chosen(content, name))
    except BadInput as error:
        raise BadInput(f"{path}: {error.field}" if error.field else str(path), error.problem, error.remedy) from error


def fields(content: object) -> dict[str, Any]:
    """As `read`, of what a file holds.

    Raises:
        BadInput: It is no mapping, or has an unknown key or a value out of range; its field is the key, if any.
    """
    if isinstance(content, dict):
        if content.get("auto_tune"):
            raise BadInput("auto_tune", "is a search, and a profile here is one run", "use `loadgen search`")
        content = {key: value for key, value in content.items() if key not in SAID}
        if content.get("request_rate") == UNLIMITED:
            content["request_rate"] = math.inf
    try:
        profile = Profile.model_validate(content)
    except ValidationError as error:
        raise _refusal(error) from error
    given = profile.model_dump(exclude_none=True)
    if "dataset_name" in given:
        given["dataset_name"] = given["dataset_name"].lower()
    return {SETTINGS[key]: value for key, value in given.items()}


def _chosen(content: Any, name: str | None) -> Any:
    """The profile of that name; without a name the only one."""
    listed = content.get("profiles") if isinstance(content, dict) else None
    if not isinstance(listed, list):
        if name is not None:
            raise BadInput("profiles", f"has none named {name!r}: it is one profile", "leave #NAME out")
        return content
    named = {str(one.get("name")): one for one in listed if isinstance(one, dict)}
    if name is None and len(named) == 1:
        return next(iter(named.values()))
    if name not in named:
        problem = "has several" if name is None else f"has none named {name!r}"
        raise BadInput("profiles", problem, f"choose with FILE#NAME, from {', '.join(named)}")
    return named[name]


def _refusal(error: ValidationError) -> BadInput:
    """Say in one line what the first thing wrong is."""
    first = error.errors()[0]
    key = ".".join(str(part) for part in first["loc"])
    if not key:
        return BadInput("", "is no mapping", REMEDY)
    if first["type"] != "extra_forbidden":
        return BadInput(key, f"{first['input']!r} is not usable", first["msg"])
    near = difflib.get_close_matches(key, SETTINGS, n=1)
    remedy = f"did you mean {near[0]}?" if near else REMEDY
    return BadInput(key, "is no key of a profile", remedy)
