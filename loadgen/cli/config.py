"""From flags, a config file and a workload to settings: a flag wins over the file, the file over the workload."""

import dataclasses
import typing
from typing import Any

from loadgen.cli import credentials
from loadgen.errors import BadInput
from loadgen.settings import RunSettings


def settings(given: dict[str, Any]) -> RunSettings:
    """The settings that the given flags, their config file and their workload make together.

    Raises:
        BadInput: A file that cannot be read, one of a credential included, or a key or value in it that is none.
    """
    given = dict(given)
    path = given.pop("config", None)
    chosen = (_read(path) if path else {}) | given
    if chosen.get("workload"):
        from loadgen import workloads

        chosen = workloads.resolve(chosen["workload"]) | chosen
    return RunSettings(**credentials.resolved(chosen))


def _read(path: str) -> dict[str, Any]:
    import yaml

    class Loader(yaml.SafeLoader):
        """Without numbers to base 60: 30:50 is a range of lengths, and not 1850."""

    def whole(loader: Loader, node: yaml.ScalarNode) -> object:
        return node.value if ":" in node.value else loader.construct_yaml_int(node)

    Loader.add_constructor("tag:yaml.org,2002:int", whole)
    try:
        with open(path, encoding="utf-8") as file:
            found = Loader(file).get_single_data()
    except OSError as error:
        raise BadInput("--config", f"{path}: {error.strerror}", "name a readable YAML file") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise BadInput("--config", f"{path} is no YAML: {' '.join(str(error).split())}", "mend it") from error
    if not isinstance(found, dict):
        raise BadInput("--config", f"{path} holds no settings", "write `name: value` lines, named like the flags")
    return _typed(path, {_field(path, key): value for key, value in found.items()})


def _field(path: str, key: Any) -> str:
    import difflib

    known = [field.name for field in dataclasses.fields(RunSettings)]
    name = str(key).replace("-", "_").removeprefix("__")
    name = {"rate": "request_rate"}.get(name, name)
    if name not in known:
        near = difflib.get_close_matches(name, known, 1)
        remedy = f"did you mean {near[0]!r}?" if near else "see `loadgen run --help` for the names"
        raise BadInput("--config", f"{path} has an unknown key {key!r}", remedy)
    return name


def _typed(path: str, found: dict[str, Any]) -> dict[str, Any]:
    """The values as the settings' types, as far as pydantic finds them to be."""
    from pydantic import ConfigDict, TypeAdapter, ValidationError

    kinds, typed = typing.get_type_hints(RunSettings), {}
    for name, value in found.items():
        try:
            typed[name] = TypeAdapter(kinds[name], config=ConfigDict(coerce_numbers_to_str=True)).validate_python(value)
        except ValidationError as error:
            message = error.errors()[0]["msg"]
            shown = "" if name in ("api_key", "header") else f"{value!r}: "
            problem = f"{path}: {name}: {shown}{message[:1].lower()}{message[1:]}"
            raise BadInput("--config", problem, "see `loadgen run --help` for what it takes") from error
    return typed
