"""RunSettings from flags, a config file, a workload, and the defaults of the tool of --compat, in this precedence."""

from typing import Any

from loadgen.cli import compat, credentials
from loadgen.config import serialize
from loadgen.config.load import SEEDS, SWEPT
from loadgen.config.option import flag
from loadgen.config.settings import RunSettings, seed_of
from loadgen.errors import BadInput


def settings(given: dict[str, Any]) -> RunSettings:
    """Return the settings of one run.

    Args:
        given: What `flags.run_settings` returns.

    Raises:
        BadInput: A file cannot be read, a key or value in it is wrong, a flag of the tool is refused, or a flag has
            several values.
    """
    name, runs = swept(given)
    if name is not None:
        raise BadInput(flag(name), "takes one value here", "give one; only `loadgen run` takes several")
    return runs[0]


def swept(given: dict[str, Any]) -> tuple[str | None, list[RunSettings]]:
    """Return the settings of each run: several if the rate, or the concurrency, has several values.

    Each run has its own seeds, counted up from those of the first, so that no run profits from the prefix cache of
    another.

    Args:
        given: What `flags.run_settings` returns.

    Returns:
        The name of the field with several values, or None; and the settings of each run.

    Raises:
        BadInput: As `settings`; or both fields have several values.
    """
    found = chosen(given)
    if found.get("workload"):
        from loadgen.config import presets

        found = presets.resolve(found["workload"]) | found
    lists = {name: found.pop(name) for name in SWEPT if isinstance(found.get(name), tuple)}
    one = RunSettings(**credentials.read_credential_files(compat.apply(given.get("compat"), found)))
    if not lists:
        return None, [one]
    if len(lists) > 1:
        raise BadInput(
            flag(SWEPT[1]), f"both it and {flag(SWEPT[0])} have several values", "give one of them a single value"
        )
    ((name, values),) = lists.items()
    seeds = {f"seed_{what}": seed_of(one, what) for what in SEEDS}
    runs = [one.replace(**{name: values[0]})]
    runs += [
        one.replace(**{name: value} | {seed: first + number for seed, first in seeds.items()})
        for number, value in enumerate(values[1:], 1)
    ]
    return name, runs


def chosen(given: dict[str, Any]) -> dict[str, Any]:
    """Return the settings from flags and the config file, without those of the workload.

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
        raise BadInput(
            "--config", f"{path} is not valid YAML: {' '.join(str(error).split())}", "correct the file"
        ) from error
    if not isinstance(found, dict):
        raise BadInput("--config", f"{path} holds no settings", "write `name: value` lines, named like the flags")
    try:
        return serialize.fields(found)
    except BadInput as error:
        raise BadInput("--config", f"{path}: {error.field}: {error.problem}", error.remedy) from error
