"""From flags, a config file, a workload and the tool of `--compat` to settings.

A flag wins over the file, the file over the workload, and the workload over what the tool takes for granted.
"""

from typing import Any

from loadgen.cli import compat, credentials
from loadgen.config import serialize
from loadgen.config.load import SEEDS, SWEPT
from loadgen.config.option import flag
from loadgen.config.settings import RunSettings, seed_of
from loadgen.errors import BadInput


def settings(given: dict[str, Any]) -> RunSettings:
    """The settings that what `flags.run_settings` gives, its config file, its workload and its tool make together.

    Raises:
        BadInput: A file that cannot be read, one of a credential included, a key or value in it that is none, a flag of
            the tool that is refused, or several of what there is one of here.
    """
    name, runs = swept(given)
    if name is not None:
        raise BadInput(flag(name), "is several", "give one; `loadgen run` takes several, for a run each")
    return runs[0]


def swept(given: dict[str, Any]) -> tuple[str | None, list[RunSettings]]:
    """The settings of each run, where rates or concurrencies are several: the name of what they are of, and a run each.

    Seeds count up from those of the first run, so that no run is helped by what a prefix cache has kept of another.

    Raises:
        BadInput: As `settings`; or both are several.
    """
    found = chosen(given)
    if found.get("workload"):
        from loadgen.config import presets

        found = presets.resolve(found["workload"]) | found
    lists = {name: found.pop(name) for name in SWEPT if isinstance(found.get(name), tuple)}
    one = RunSettings(**credentials.resolved(compat.completed(given.get("compat"), found)))
    if not lists:
        return None, [one]
    if len(lists) > 1:
        raise BadInput(flag(SWEPT[1]), f"several, beside several of {flag(SWEPT[0])}", "give one of the two once")
    ((name, values),) = lists.items()
    seeds = {f"seed_{what}": seed_of(one, what) for what in SEEDS}
    runs = [one.replace(**{name: values[0]})]
    runs += [
        one.replace(**{name: value} | {seed: first + number for seed, first in seeds.items()})
        for number, value in enumerate(values[1:], 1)
    ]
    return name, runs


def chosen(given: dict[str, Any]) -> dict[str, Any]:
    """What is given by flags and in a config file, without the workload's.

    Raises:
        BadInput: As `settings`.
    """
    path = given.get("config")
    own = {name: value for name, value in given.items() if name not in ("config", "compat")}
    return (_read(path) if path else {}) | own


def _read(path: str) -> dict[str, Any]:
    import yaml

    from loadgen.util.yaml_loader import loader

    try:
        with open(path, encoding="utf-8") as file:
            found = loader(file).get_single_data()
    except OSError as error:
        raise BadInput("--config", f"{path}: {error.strerror}", "name a readable YAML file") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise BadInput("--config", f"{path} is no YAML: {' '.join(str(error).split())}", "mend it") from error
    if not isinstance(found, dict):
        raise BadInput("--config", f"{path} holds no settings", "write `name: value` lines, named like the flags")
    try:
        return serialize.fields(found)
    except BadInput as error:
        raise BadInput("--config", f"{path}: {error.field}: {error.problem}", error.remedy) from error
