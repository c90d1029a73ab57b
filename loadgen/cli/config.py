"""From flags, a config file, a workload and the tool of `--compat` to settings.

A flag wins over the file, the file over the workload, and the workload over what the tool takes for granted.
"""

from typing import Any

from loadgen import written
from loadgen.cli import compat, credentials
from loadgen.errors import BadInput
from loadgen.settings import RunSettings


def settings(given: dict[str, Any]) -> RunSettings:
    """The settings that what `flags.run_settings` gives, its config file, its workload and its tool make together.

    Raises:
        BadInput: A file that cannot be read, one of a credential included, a key or value in it that is none, or a
            flag of the tool that is refused.
    """
    given = dict(given)
    path, tool = given.pop("config", None), given.pop("compat", None)
    chosen = (_read(path) if path else {}) | given
    if chosen.get("workload"):
        from loadgen import workloads

        chosen = workloads.resolve(chosen["workload"]) | chosen
    return RunSettings(**credentials.resolved(compat.completed(tool, chosen)))


def _read(path: str) -> dict[str, Any]:
    import yaml

    from loadgen.yaml_loader import loader

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
        return written.fields(found)
    except BadInput as error:
        raise BadInput("--config", f"{path}: {error.field}: {error.problem}", error.remedy) from error
