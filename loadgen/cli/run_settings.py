"""RunSettings from flags, a config file, a workload, and the defaults of the tool of --compat,
in this precedence.
"""

import logging
from typing import Any

from loadgen.cli import compat
from loadgen.cli.compat.vllm_rs import NUM_PROMPTS_FACTOR, NUM_RUNS
from loadgen.config import credential_files, presets, serialize, target
from loadgen.config.data import MULTI_TURN
from loadgen.config.load import SEEDS, SWEPT
from loadgen.config.settings import RunSettings, seed_of
from loadgen.errors import BadInput, setting, within
from loadgen.util.redaction import KEY_VARIABLE, is_credential, split_header
from loadgen.util.yaml_loader import loader

VISIBLE = "{}: other users of this machine can see it in the process list; {}"


def settings(flag_values: dict[str, Any]) -> RunSettings:
    """Return the settings of one run.

    Args:
        flag_values: What `flags.run_settings` returns.

    Raises:
        BadInput: A file cannot be read, a key or value in it is wrong, a flag of the tool is
            refused, or a flag has several values.
    """
    name, runs = swept(flag_values)
    if name is not None:
        raise BadInput(
            setting(name), "takes one value here", "give one; only `loadgen run` takes several"
        )
    return runs[0]


def swept(flag_values: dict[str, Any]) -> tuple[str | None, list[RunSettings]]:
    """Return the settings of each run: several if the rate, or the concurrency, has several values,
    or with --num-runs.

    Each run has its own seeds, counted up from those of the first, so that no run profits from the
    prefix cache of another.

    Args:
        flag_values: What `flags.run_settings` returns.

    Returns:
        The name of the field with several values, or the same value several times, or None; and the
        settings of each run.

    Raises:
        BadInput: As `settings`; or both fields have several values.
    """
    fields = chosen(flag_values)
    if fields.get("workload"):
        fields = presets.merge(fields["workload"], fields)
    fields = compat.apply(flag_values.get("compat"), fields)
    count, factor = fields.pop(NUM_RUNS, 1), fields.pop(NUM_PROMPTS_FACTOR, None)
    lists = {name: fields.pop(name) for name in SWEPT if isinstance(fields.get(name), tuple)}
    first = RunSettings(**credential_files.read_credential_files(fields))
    if count > 1:
        if lists:
            raise BadInput(
                "--num-runs",
                f"given with several values of {setting(next(iter(lists)))}",
                "give one of both",
            )
        name = "max_concurrency" if first.max_concurrency is not None else "request_rate"
        lists[name] = (getattr(first, name),) * count
    if factor is not None and first.dataset_name == MULTI_TURN:
        raise BadInput(
            "--sweep-num-prompts-factor", "not supported for sessions", "give --num-prompts"
        )
    if factor is not None and "max_concurrency" not in lists:
        first = _with_prompts(first, factor)
    if not lists:
        return None, [first]
    if len(lists) > 1:
        raise BadInput(
            setting(SWEPT[1]),
            f"both it and {setting(SWEPT[0])} have several values",
            "give one of them a single value",
        )
    ((name, values),) = lists.items()
    seeds = {f"seed_{what}": seed_of(first, what) for what in SEEDS}
    runs = [first.replace(**{name: values[0]})]
    runs += [
        first.replace(**{name: value} | {field: seed + number for field, seed in seeds.items()})
        for number, value in enumerate(values[1:], 1)
    ]
    return name, runs if factor is None else [_with_prompts(run, factor) for run in runs]


def chosen(flag_values: dict[str, Any]) -> dict[str, Any]:
    """Return the settings from flags and the config file, without those of the workload.

    Raises:
        BadInput: As `settings`; or several servers are named, and not how they share the load.
    """
    path = flag_values.get("config")
    fields = {
        name: value for name, value in flag_values.items() if name not in ("config", "compat")
    }
    chosen = (_read(path) if path else {}) | fields
    urls = fields.get("base_url")
    if isinstance(urls, tuple) and len(urls) > 1 and "balance" not in chosen:
        remedy = f"give one, or add --balance {target.BALANCE}: they then share the load"
        raise BadInput(setting.base_url, f"given {len(urls)} times", remedy)
    return chosen


def warn_of_visible(flag_values: dict[str, Any]) -> None:
    """Log a warning for each secret on the command line, which is public: `ps` shows it to every
    user.

    Args:
        flag_values: What the command line gives, by the names of settings.
    """
    key = flag_values.get("api_key", "")
    if not key.startswith("@") and is_credential("Authorization", f"Bearer {key}"):
        logging.warning(VISIBLE.format("--api-key", f"give @FILE, or set {KEY_VARIABLE}"))
    for header in flag_values.get("header", ()):
        name, value = split_header(header) or ("", "")
        if not value.startswith("@") and is_credential(name, value):
            logging.warning(VISIBLE.format(f"--header {name}", f"give {name}=@FILE"))
    urls = flag_values.get("base_url", ())
    if any("@" in url for url in ((urls,) if isinstance(urls, str) else urls)):
        logging.warning(
            VISIBLE.format("--base-url with a password", "name the server in a --config file")
        )
    proxy = flag_values.get("proxy", "")
    if "@" in proxy and not proxy.startswith("@"):
        logging.warning(VISIBLE.format("--proxy with a password", "give @FILE"))


def _with_prompts(settings: RunSettings, factor: int) -> RunSettings:
    """Return settings with a number of prompts that is a multiple of the concurrency.

    Raises:
        BadInput: There is no concurrency.
    """
    if settings.max_concurrency is None:
        remedy = "give --sweep-max-concurrency, or --num-prompts instead"
        raise BadInput("--sweep-num-prompts-factor", "given without a concurrency", remedy)
    return settings.replace(num_prompts=factor * settings.max_concurrency)


def _read(path: str) -> dict[str, Any]:
    import yaml

    try:
        with open(path, encoding="utf-8") as file:
            fields = loader(file).get_single_data()
    except OSError as error:
        raise BadInput(
            "--config", f"{path}: {error.strerror}", "name a readable YAML file"
        ) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise BadInput(
            "--config",
            f"{path} is not valid YAML: {' '.join(str(error).split())}",
            "correct the file",
        ) from error
    if not isinstance(fields, dict):
        raise BadInput(
            "--config",
            f"{path} holds no settings",
            "write `name: value` lines, named like the flags",
        )
    with within("--config", path):
        return serialize.fields(fields)
