"""The names that flags of `loadgen run` have in a job: errors and their remedies name those of the job."""

import contextlib
import re
from collections.abc import Iterator, Mapping

from loadgen.errors import BadInput, Unreachable

FLAG_NAMES = {
    "--base-url": "--target",
    "--tokenizer": "--processor",
    "--api-key": "--backend-kwargs api_key",
    "--first-token-timeout": "--backend-kwargs timeout",
    "--stall-timeout": "--backend-kwargs timeout",
    "--request-rate": "--rate",
    "--num-prompts": "--max-requests",
    "--duration": "--max-seconds",
    "--dataset-path": "--data",
    "--dataset-rule": "--data",
    "--random-input-len": "--data prompt_tokens",
    "--random-output-len": "--data output_tokens",
    "--turns": "--data turns",
    "--prefix-buckets": "--data prefix_buckets",
    "--sharegpt-output-len": "--sharegpt-max-output-tokens",
    "--sharegpt-input-len": "--sharegpt-min-input-tokens",
    "--seed": "--random-seed",
    "--records": "--output-dir",
    "--workload": "--scenario",
}


FLAG = re.compile(r"`[^`]*`|--[a-z][a-z-]*")  # or a command line in backquotes, which stays as it is


@contextlib.contextmanager
def renamed_flags(names: Mapping[str, str] = FLAG_NAMES) -> Iterator[None]:
    """Replace the flags that an error names, in its remedy too, by their names here.

    Args:
        names: The names here, by the flags of `loadgen run`.
    """
    try:
        yield
    except BadInput as error:
        field, remedy = _renamed(error.field, names), _renamed(error.remedy, names)
        raise BadInput(field, error.problem, remedy) from error
    except Unreachable as error:
        raise Unreachable(_renamed(str(error), names)) from error


def _renamed(text: str, names: Mapping[str, str]) -> str:
    return FLAG.sub(lambda flag: names.get(flag[0], flag[0]), text)
