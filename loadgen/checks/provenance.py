"""Group G, provenance: does the result say what one needs to make the same run again?"""

from loadgen.checks.check import NONE, Check
from loadgen.metrics.run_data import RunData

# Parts of the provenance, and what of each must be known.
NEEDED = {
    "settings": (),
    "seeds": ("arrivals", "prompts", "order"),
    "schedule": ("sha256",),
    "prompts": ("sha256",),
    "versions": ("loadgen",),
    "machine": ("system", "cores", "open_files_limit", "local_ports", "clock_source"),
}
ENGINE_VERSION = "engine_version"  # the name under which --metadata may say what a server does not
_ADVICE = f"name it with --metadata {ENGINE_VERSION}=..., so that the run can be made again"


def provenance(run: RunData) -> list[Check]:
    """Check that the provenance is complete; the simulator is of loadgen's own version."""
    missing = []
    for part, names in NEEDED.items():
        saved = run.header.provenance.get(part)
        if saved is None:
            missing.append(part)
            continue
        missing += [f"{part} {name}" for name in names if saved.get(name) in (None, [], "")]
    in_metadata = any(
        pair.partition("=")[0].strip() == ENGINE_VERSION for pair in run.settings.metadata
    )
    version = run.header.simulated or in_metadata or run.header.provenance["engine"].get("version")
    if (
        run.relied_on and not version
    ):  # many servers do not tell: nobody reads a remark that every run repeats
        missing.append("engine version")
    about = f"unknown: {', '.join(missing)}" if missing else "unknown"
    return [NONE.check("provenance incomplete", len(missing), about, _ADVICE, counts=False)]
