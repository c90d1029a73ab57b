"""From flags, a config file and a workload to settings: a flag wins over the file, the file over the workload."""

import dataclasses
from typing import Any

from loadgen.errors import BadInput
from loadgen.settings import RunSettings


def settings(given: dict[str, Any]) -> RunSettings:
    """The settings that the given flags, their config file and their workload make together.

    Raises:
        BadInput: A file that cannot be read, or a key or value in it that is none.
    """
    given = dict(given)
    path = given.pop("config", None)
    chosen = (_read(path) if path else {}) | given
    if chosen.get("workload"):
        from loadgen import workloads

        chosen = workloads.resolve(chosen["workload"]) | chosen
    return RunSettings(**chosen)


def _read(path: str) -> dict[str, Any]:
    import yaml

    try:
        with open(path, encoding="utf-8") as file:
            found = yaml.safe_load(file)
    except OSError as error:
        raise BadInput("--config", f"{path}: {error.strerror}", "name a readable YAML file") from error
    except yaml.YAMLError as error:
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
    from pydantic import TypeAdapter, ValidationError

    try:
        read = TypeAdapter(RunSettings).validate_python(found)
    except ValidationError as error:
        first = error.errors()[0]
        key = str(first["loc"][0]) if first["loc"] else "?"
        problem = f"{path}: {key}: {first['msg'][:1].lower()}{first['msg'][1:]}"
        raise BadInput("--config", problem, f"it is {found.get(key)!r}") from error
    return {name: getattr(read, name) for name in found}
