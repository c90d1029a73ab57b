"""The names that flags of `loadgen run` have in a job: errors name those that the job gave."""

import contextlib
from collections.abc import Iterator, Mapping

from loadgen.errors import BadInput

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


@contextlib.contextmanager
def renamed_flags(names: Mapping[str, str] = FLAG_NAMES) -> Iterator[None]:
    """Replace the flag that a BadInput names by its name here.

    Args:
        names: The names here, by the flags of `loadgen run`.
    """
    try:
        yield
    except BadInput as error:
        raise BadInput(names.get(error.field, error.field), error.problem, error.remedy) from error
