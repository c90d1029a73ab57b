"""Rules of `--dataset-rule`: prompts as other tools make them, to compare with their published
results.

A rule is a data set that replaces the one of its kind. Rules are entry points of the group
`loadgen.dataset_rules`; `random.vllm-0.11` is the rule `vllm-0.11` of the data set `random`.
"""

from typing import TYPE_CHECKING

from loadgen.errors import BadInput, setting
from loadgen.util import packages
from loadgen.util.packages import require

if TYPE_CHECKING:
    from loadgen.workload.datasets import DatasetClass

FLAG = setting.dataset_rule
GROUP = "loadgen.dataset_rules"
PACKAGES = {"guidellm-0.5": "faker"}  # that a rule needs, and a plain installation does not have


def require_packages(rule: str | None) -> None:
    """Check that the package of a rule is installed.

    Raises:
        BadInput: It is not.
    """
    if rule in PACKAGES:
        require(FLAG, f"making texts as {rule}", PACKAGES[rule])


def names(kind: str) -> list[str]:
    """Return the names of the rules of a kind of data set (`--dataset-name`)."""
    prefix = f"{kind}."
    entries = packages.installed(GROUP)
    return [entry.name.removeprefix(prefix) for entry in entries if entry.name.startswith(prefix)]


def find(kind: str, rule: str) -> "DatasetClass":
    """Find the data set of a kind (`--dataset-name`) and a rule.

    Raises:
        BadInput: The kind has no such rule, or the rule cannot be imported.
    """
    rules = names(kind)
    if rule not in rules:
        remedy = "leave it out: the data set has no rules"
        if rules:
            remedy = f"choose one of: {', '.join(rules)}; or leave it out"
        raise BadInput(FLAG, f"unknown rule {rule!r} for {kind}", remedy)
    dataset: DatasetClass = packages.load(FLAG, packages.installed(GROUP)[f"{kind}.{rule}"])
    return dataset
