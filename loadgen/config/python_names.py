"""Names in errors: a program writes fields and arguments where the command has flags."""

import contextlib
import re
from collections.abc import Iterator
from dataclasses import fields

from loadgen.config.option import flag
from loadgen.config.run_fields import RunFields
from loadgen.errors import BadInput, LoadgenError

FLAG = re.compile(r"--[a-z][a-z0-9-]*[a-z0-9]")


@contextlib.contextmanager
def python_names(*arguments: str) -> Iterator[None]:
    """Rename flags in the errors of the block: `--request-rate` becomes `request_rate`.

    Args:
        arguments: Names of arguments of the caller that are flags of a command, beside the fields of `RunSettings`.
    """
    try:
        yield
    except LoadgenError as error:
        names = {flag(name): name for name in (*arguments, *(field.name for field in fields(RunFields)))}
        names |= {alias: field.name for field in fields(RunFields) if (alias := field.metadata["alias"])}

        def renamed(text: str) -> str:
            return FLAG.sub(lambda found: names.get(found[0], found[0]), text)

        error.args = tuple(renamed(each) if isinstance(each, str) else each for each in error.args)
        if isinstance(error, BadInput):
            error.field, error.problem, error.remedy = map(renamed, (error.field, error.problem, error.remedy))
        raise
