"""SGLang's flags of generated-shared-prefix, and their defaults: groups of `prefix_repetition`."""

from typing import Any

from loadgen.cli.compat.tool_flags import NONE, ONE, Settings, marked, refused, renamed, switch
from loadgen.config.data import PREFIX_REPETITION
from loadgen.config.load import COLD, WARM
from loadgen.config.option import SHARE
from loadgen.errors import BadInput
from loadgen.util.argument_parser import integer, number

GROUPS, PER_GROUP = 64, 16
DISTRIBUTION, ALPHA, RATIO, PREWARM = (
    "--gsp-group-distribution",
    "--gsp-zipf-alpha",
    "--gsp-range-ratio",
    "--gsp-prewarm-prefixes",
)
UNIFORM, ZIPF = "uniform", "zipf"
COUNT, PREFIX = "prefix_repetition_num_prefixes", "prefix_repetition_prefix_len"
LENGTHS = ("prefix_repetition_suffix_len", "prefix_repetition_output_len")
DEFAULTS: dict[str, Any] = {COUNT: GROUPS, PREFIX: 2048, LENGTHS[0]: 128, LENGTHS[1]: 256}
MARKER = "_generated_shared_prefix"  # values of the flags that only this data set reads


def defaults(settings: Settings) -> dict[str, Any]:
    """Return the defaults of the data set; nothing for others."""
    if settings.get("dataset_name") != PREFIX_REPETITION:
        return {}
    return DEFAULTS | {"num_prompts": _prompts(settings)}


def applied(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings with the groups, lengths and turns of the flags.

    Raises:
        BadInput: A value is out of range, or flags exclude each other.
    """
    if settings["dataset_name"] != PREFIX_REPETITION:
        return settings
    result, values = dict(settings), settings.get(MARKER, {})
    if "--gsp-prompts-per-group" in values:
        result["num_prompts"] = _prompts(settings)
    if (turns := values.get("--gsp-num-turns", 1)) != 1:
        result["turns"] = str(turns)
    alpha = _zipf_exponent(values)
    if alpha is not None:
        result["prefix_zipf"] = alpha
    elif "--gsp-ordered" in values:  # what Zipf's law draws has no order
        result["disable_shuffle"] = True
    if PREWARM in values:
        if result.get("cache") == COLD:
            problem = "--flush-cache would empty the cache after the prefixes were sent"
            raise BadInput(
                PREWARM, problem, "leave one of the two out; another --seed makes other prompts"
            )
        result["cache"] = WARM
    return _with_ranges(result, values.get(RATIO, 1.0))


def _prompts(settings: Settings) -> int:
    values = settings.get(MARKER, {})
    groups, per_group = (
        settings.get(COUNT, GROUPS),
        values.get("--gsp-prompts-per-group", PER_GROUP),
    )
    requests: int = groups * per_group * values.get("--gsp-num-turns", 1)
    return requests


def _zipf_exponent(values: dict[str, Any]) -> float | None:
    """Return the exponent of Zipf's law; None: all groups are equal."""
    alpha: float | None = values.get(ALPHA)
    distribution = values.get(DISTRIBUTION, UNIFORM)
    if distribution not in (UNIFORM, ZIPF):
        raise BadInput(
            DISTRIBUTION, f"{distribution!r} is unknown", f"choose from {UNIFORM}, {ZIPF}"
        )
    if distribution == ZIPF and alpha is None:
        raise BadInput(DISTRIBUTION, f"{ZIPF} needs its exponent", f"give {ALPHA} a number above 0")
    if distribution == UNIFORM and alpha is not None:
        raise BadInput(
            ALPHA,
            f"has no effect without {DISTRIBUTION} {ZIPF}",
            "give that too, or leave this out",
        )
    return alpha


def _with_ranges(settings: dict[str, Any], ratio: float) -> dict[str, Any]:
    """Return the settings with lengths from ratio * LEN to LEN, as SGLang draws them."""
    SHARE.check(RATIO, ratio)
    if ratio == 1:
        return settings
    result = {name: value for name, value in settings.items() if name not in (COUNT, PREFIX)}
    for field in LENGTHS:
        if isinstance(settings[field], int):
            result[field] = f"{_least(settings[field], ratio)}:{settings[field]}"
    if settings[PREFIX] > 0:
        result["prefix_buckets"] = (
            f"{settings[COUNT]}x{_least(settings[PREFIX], ratio)}-{settings[PREFIX]}"
        )
    else:
        result[PREFIX] = 0
    return result


def _least(tokens: int, ratio: float) -> int:
    return max(int(tokens * ratio), 1)


FLAGS = (
    renamed("--gsp-num-groups", COUNT, integer),
    marked(MARKER, "--gsp-prompts-per-group", integer, ("num_prompts",)),
    renamed("--gsp-system-prompt-len", PREFIX, integer),
    renamed("--gsp-question-len", LENGTHS[0], integer),
    renamed("--gsp-output-len", LENGTHS[1], integer),
    marked(MARKER, RATIO, number, ("prefix_buckets",)),
    marked(MARKER, "--gsp-num-turns", integer, ("turns",)),
    marked(MARKER, "--gsp-ordered", becomes=("disable_shuffle",), values=NONE),
    marked(MARKER, DISTRIBUTION),
    marked(MARKER, ALPHA, number, ("prefix_zipf",)),
    marked(MARKER, PREWARM, becomes=("cache",), values=NONE),
    switch("--gsp-prewarm-concurrency", {}, ONE),
    switch("--gsp-fast-prepare", {}),
    refused(
        "--gsp-send-routing-key",
        "no header names the group of a prompt",
        "leave it out; --session-header names the session of the turns",
        NONE,
    ),
)
