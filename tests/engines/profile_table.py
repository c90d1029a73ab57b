"""The table of docs/simulator.md: what each profile comes to; `python -m
tests.engines.profile_table` writes it.
"""

from dataclasses import asdict

from loadgen.engines.sim.capacity import capacity_per_s
from loadgen.engines.sim.deployment import GIB, PROFILES, StartFailed, deployment
from loadgen.engines.sim.settings import SimSettings
from tests.helpers.documents import between, table
from tests.helpers.source import ROOT

DOCUMENT = ROOT / "docs/simulator.md"
BEGIN, END = (
    "<!-- profiles: written by python -m tests.engines.profile_table -->",
    "<!-- end of profiles -->",
)
HEAD = (
    "profile",
    "weights",
    "cache, tokens",
    "lone decode step",
    "prefill",
    "capacity, 1024 + 128 tokens",
)


def row(name: str) -> tuple[str, ...]:
    plain = SimSettings(profile=name)
    weights = f"{deployment(asdict(plain)).weight_bytes / GIB:.1f} GiB"
    try:
        settings = SimSettings.of(profile=name)
    except StartFailed:
        return f"`{name}`", weights, "too small for 40,960", "-", "-", "-"
    costs = settings.costs
    return (
        f"`{name}`",
        weights,
        f"{settings.num_kv_tokens:,}",
        f"{costs.duration_ns(0, 1, 1024) / 1e6:.1f} ms",
        f"{1e9 / costs.matmul_ns_per_token:,.0f} tok/s",
        f"{capacity_per_s(settings, 1024, 128):.1f} req/s",
    )


def written() -> str:
    return table(HEAD, map(row, PROFILES))


if __name__ == "__main__":
    between(DOCUMENT, BEGIN, written(), END)
