"""RunSettings from flags, a config file, a workload, and the defaults of the tool of --compat, in this precedence."""

from typing import Any

from loadgen.cli import compat
from loadgen.cli.compat.vllm_rs import NUM_PROMPTS_FACTOR, NUM_RUNS
from loadgen.config import serialize, target
from loadgen.config.data import MULTI_TURN
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
    """Return the settings of each run: several if the rate, or the concurrency, has several values, or with --num-runs.

    Each run has its own seeds, counted up from those of the first, so that no run profits from the prefix cache of
    another.

    Args:
        given: What `flags.run_settings` returns.

    Returns:
        The name of the field with several values, or the same value several times, or None; and the settings of each
        run.

    Raises:
        BadInput: As `settings`; or both fields have several values.
    """
    found = chosen(given)
    if found.get("workload"):
        from loadgen.config import presets

        found = presets.merge(found["workload"], found)
    found = compat.apply(given.get("compat"), found)
    count, factor = found.pop(NUM_RUNS, 1), found.pop(NUM_PROMPTS_FACTOR, None)
    lists = {name: found.pop(name) for name in SWEPT if isinstance(found.get(name), tuple)}
    one = RunSettings(**target.read_credential_files(found))
    if count > 1:
        if lists:
            raise BadInput("--num-runs", f"given with several values of {flag(next(iter(lists)))}", "give one of both")
        name = "max_concurrency" if one.max_concurrency is not None else "request_rate"
        lists[name] = (getattr(one, name),) * count
    if factor is not None and one.dataset_name == MULTI_TURN:
        raise BadInput("--sweep-num-prompts-factor", "not supported for sessions", "give --num-prompts")
    if factor is not None and "max_concurrency" not in lists:
        one = _with_prompts(one, factor)
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
    return name, runs if factor is None else [_with_prompts(run, factor) for run in runs]


def _with_prompts(settings: RunSettings, factor: int) -> RunSettings:
    """Return settings with a number of prompts that is a multiple of the concurrency.

    Raises:
        BadInput: There is no concurrency.
    """
    if settings.max_concurrency is None:
        remedy = "give --sweep-max-concurrency, or --num-prompts instead"
        raise BadInput("--sweep-num-prompts-factor", "given without a concurrency", remedy)
    return settings.replace(num_prompts=factor * settings.max_concurrency)


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
