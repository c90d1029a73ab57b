"""Accepted settings: what a call of the library takes, or refuses by name before anything is
sent.
"""

from pathlib import Path

from loadgen.config import credential_files, output_check, target
from loadgen.config.option import check_type, options
from loadgen.config.output import FILES, SAVING
from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput, setting
from loadgen.workload import endpoints
from loadgen.workload.prompt import Dataset


def accepted(settings: RunSettings) -> RunSettings:
    """Check the settings of a run and return them, with the credentials that `@FILE` names.

    Raises:
        BadInput: A value cannot be used, a file cannot be written, no server is named, or the
            library cannot do what a setting asks.
    """
    check_type("settings", settings, RunSettings, "give a RunSettings")
    for name, option in options(RunSettings).items():
        if option.instead and getattr(settings, name) != option.default:
            raise BadInput(setting(name), "is for the command alone", option.instead)
    fields_of_secrets = ("api_key", "header", "proxy")
    secrets = credential_files.read_credential_files(
        {name: getattr(settings, name) for name in fields_of_secrets}
    )
    checked = endpoints.checked(settings.replace(**secrets))
    output_check.check_writable(checked)
    target.check_server(checked)
    return checked


def accepted_for_series(settings: RunSettings) -> RunSettings:
    """Check the settings of several runs as `accepted` does; these write no files.

    Raises:
        BadInput: As `accepted`; or a setting names a file.
    """
    for name in {*SAVING, *FILES}:
        if getattr(settings, name) != getattr(RunSettings, name):
            raise BadInput(
                setting(name),
                "is for single runs",
                "leave it out, and call save(path) of what is returned",
            )
    return accepted(settings)


def check_dataset(dataset: Dataset | None) -> None:
    """Check the type of an argument with prompts.

    Raises:
        BadInput: It is no data set.
    """
    remedy = (
        "give an object with prompts(count) and provenance(), or the name of a data set as "
        "dataset_name"
    )
    check_type("dataset", dataset, Dataset | None, remedy)


def check_callback(name: str, function: object) -> None:
    """Check that an argument can be called.

    Raises:
        BadInput: It cannot.
    """
    if not callable(function):
        raise BadInput(name, f"is a value of type {type(function).__name__}", "give a function")


def check_path(name: str, path: object) -> None:
    """Check that an argument is a path.

    Raises:
        BadInput: It is not.
    """
    check_type(name, path, str | Path, "give the path of a file")
