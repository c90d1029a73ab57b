"""Accepted settings: what a call of the library takes, or refuses by name before anything is sent."""

from dataclasses import fields

from loadgen.config import credential_files, output_check
from loadgen.config.option import flag
from loadgen.config.output import FILES
from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.workload import endpoints

SAVING = ("save_result", "append_result", "save_detailed")  # any of them writes the result
NAMES_OF_RESULT = ("result_dir", "result_filename")


def accepted(settings: RunSettings | None) -> RunSettings:
    """Check the settings of a run and return them, with the credentials that `@FILE` names.

    Raises:
        BadInput: A value cannot be used, a file cannot be written, or the library cannot do what a setting asks.
    """
    given = settings or RunSettings()
    for field in fields(RunSettings):
        if field.metadata["instead"] and getattr(given, field.name) != field.default:
            raise BadInput(flag(field.name), "is for the command alone", field.metadata["instead"])
    for name in NAMES_OF_RESULT:
        if getattr(given, name) is not None and not any(getattr(given, saving) for saving in SAVING):
            raise BadInput(flag(name), "names a file that nothing asks for", "add save_result=True")
    secrets = credential_files.read_credential_files({"api_key": given.api_key, "header": given.header})
    asked = endpoints.checked(given.replace(**secrets))
    output_check.check_writable(asked)
    return asked


def accepted_for_series(settings: RunSettings) -> RunSettings:
    """Check the settings of several runs as `accepted` does; these write no files.

    Raises:
        BadInput: As `accepted`; or a setting names a file.
    """
    for name in (*SAVING, *NAMES_OF_RESULT, *FILES):
        if getattr(settings, name) != getattr(RunSettings, name):
            raise BadInput(flag(name), "is for single runs", "leave it out, and call save(path) of what is returned")
    return accepted(settings)
