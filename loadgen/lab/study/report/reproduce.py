"""How to repeat a study: a script that starts baseline and winner again and runs the deciding
workload on each.

The report also has the commands that fetch the data of the workloads, and those that run them by
hand.
"""

import math
import shlex
import sys
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any
from urllib.parse import urlsplit

from loadgen.cli import compat
from loadgen.config import serialize
from loadgen.config.option import flag
from loadgen.config.settings import RunSettings
from loadgen.config.target import SIMULATOR
from loadgen.document import Block, Code, Heading, Items, Paragraph, Span, Tone, line, prose
from loadgen.errors import BadInput
from loadgen.lab.study.plan.plan import PlannedArm
from loadgen.lab.study.report.report_model import ReportModel
from loadgen.lab.study.spec.study import MAX_RATE, Study
from loadgen.lab.study.spec.workloads import loads
from loadgen.runner.start_engine import settings_for_engine
from loadgen.util.number_format import plural
from loadgen.util.redaction import SECRET_NAME, redact_command
from loadgen.workload import endpoints, vllm_load
from loadgen.workload.datasets import sharegpt_file

HEAD = """\
#!/usr/bin/env bash
# {what}
# Usage: reproduce.sh [{names}]... Its paths are relative to the folder in which it is run.
# The logs of the servers go to $LOGS (.).
set -euo pipefail

logs=$(cd "${{LOGS:-.}}" && pwd)
servers=()
stop() {{
    for server in "${{servers[@]}}"; do kill "$server" 2>/dev/null || true; done
    for server in "${{servers[@]}}"; do wait "$server" 2>/dev/null || true; done
    servers=()
}}
trap stop EXIT

# serve NAME FOLDER COMMAND...: start a server in a folder.
serve() {{
    (cd "$2" && exec "${{@:3}}") >"$logs/$1.log" 2>&1 &
    servers+=($!)
}}

# expect_free HOST PORT: fail if something listens there, which would be measured in place of the
# server.
expect_free() {{
    if (exec 3<>"/dev/tcp/$1/$2") 2>/dev/null; then
        echo "something listens at $1:$2 already: end it, or change the port in this script" >&2
        exit 1
    fi
}}

# await HOST PORT: wait until a server listens there; fail if the last server ends.
await() {{
    for ((second = 0; second < {patience}; second++)); do
        if (exec 3<>"/dev/tcp/$1/$2") 2>/dev/null; then return; fi
        kill -0 "${{servers[-1]}}" || {{ echo "the server has ended: see its log" >&2; exit 1; }}
        sleep 1
    done
    echo "no server listens at $1:$2" >&2
    exit 1
}}
"""
TAIL = """
status=0
for arm in ${{@:-{names}}}; do
    case $arm in
    {pattern}) echo "== $arm"; "$arm" || status=$?; stop ;;
    *) echo "unknown arm $arm: use {pattern}" >&2; exit 2 ;;
    esac
done
exit "$status"
"""


def script(study: Study, settings: RunSettings, arms: Mapping[str, PlannedArm]) -> str:
    """Return the bash script; it takes credentials from environment variables.

    Args:
        study: The study.
        settings: Settings of the deciding workload.
        arms: Arms to start, by their roles: baseline, winner.
    """
    on = f"{study.objective.metric} on {study.objective.workload}"
    what = _comment(f"Study {study.name}: {on}; each arm is started once.")
    names = "|".join(arms)
    parts = [HEAD.format(what=what, names=names, patience=math.ceil(study.budget.start_timeout))]
    parts += [
        "\n".join(_function(name, planned, study, settings)) + "\n"
        for name, planned in arms.items()
    ]
    return "\n".join(parts) + TAIL.format(names=" ".join(arms), pattern="|".join(arms))


def _function(name: str, planned: PlannedArm, study: Study, settings: RunSettings) -> Iterator[str]:
    yield f"{name}() {{  # {_comment(planned.name)}"
    for number, launch in enumerate(planned.launches):
        secrets = [variable for variable in launch.env if SECRET_NAME.search(variable)]
        yield from (f'    : "${{{variable}:?the study ran with it}}"' for variable in secrets)
        for path, text in launch.files.items():
            yield f"    mkdir -p {shlex.quote(str(path.parent))}"
            yield f"    printf %s {shlex.quote(text)} >{shlex.quote(str(path))}"
        variables = [
            f"{variable}={value}"
            for variable, value in launch.env.items()
            if variable not in secrets
        ]
        words = ["env", *variables] if variables else []
        words += [
            "python3" if word == sys.executable else word for word in redact_command(launch.argv)
        ]
        folder = shlex.quote(str(launch.folder or "."))
        where = urlsplit(launch.base_url)
        yield f"    expect_free {where.hostname} {where.port}"
        yield f"    serve {name}-{number} {folder} {shlex.join(words)}"
        yield f"    await {where.hostname} {where.port}"
    words = serialize.flags(run_settings(planned, study, settings))
    yield f"    loadgen run {shlex.join(words)}"
    yield "}"


def run_settings(planned: PlannedArm, study: Study, settings: RunSettings) -> RunSettings:
    """Return the settings that run a workload on an arm at the addresses of its shown commands.

    Args:
        planned: The arm.
        study: The study.
        settings: Settings of the workload.
    """
    simulated = planned.spec.engine == SIMULATOR
    return settings_for_engine(
        planned.launches, settings.replace(model=planned.model), simulated=simulated
    ).replace(
        base_url=tuple(launch.base_url for launch in planned.launches),
        ready_check_timeout_sec=study.budget.start_timeout,
        slo=study.objective.slo if study.objective.metric != MAX_RATE else None,
    )


def _comment(text: str) -> str:
    return " ".join(text.split())


def benchmark_script(model: ReportModel, served: PlannedArm) -> Iterator[Block]:
    """Yield the commands that run each workload on an arm.

    Args:
        model: Contents of the report.
        served: The arm.
    """
    where = " and ".join(launch.base_url for launch in served.launches)
    runs = {
        name: run_settings(served, model.study, load) for name, load in loads(model.study).items()
    }
    commands = {name: client_command(run) for name, run in runs.items()}
    rows = [f"# {name}\n{command}" for name, (command, _) in commands.items()]
    releases = dict.fromkeys(release for _, release in commands.values() if release)
    yield Heading(3, "Benchmark Script")
    how = (
        "These results are imported: the study started no server. With `loadgen`, these commands "
        "run its workloads on the baseline's"
        if model.published
        else "In a stage `loadgen` runs the deciding workload and those that the stage names, in "
        "the confirmation all workloads. It empties the engine's caches in between. These commands "
        "use the baseline's"
    )
    yield Paragraph(
        prose(f"{how} at {where}; an engine that is started by hand may listen elsewhere:")
    )
    yield Code("\n\n".join(rows), "bash")
    if releases:
        same = " or ".join(f"`loadgen run --compat {release}`" for release in releases)
        yield Paragraph(prose(f"With the flags of `vllm bench serve`, {same} sends the same."))


def data_section(model: ReportModel) -> Iterator[Block]:
    """Yield the data of each workload, and the commands that fetch it.

    Args:
        model: Contents of the report.
    """
    workloads = loads(model.study)
    yield Heading(3, "Benchmark Dataset")
    yield Items(
        tuple(
            line(Span(name, Tone.STRONG), f": {_described(load)}")
            for name, load in workloads.items()
        )
    )
    commands: dict[str, None] = {}
    for load in workloads.values():
        path = PurePath(load.dataset_path or "")
        if load.dataset_name == "sharegpt" and path.name == sharegpt_file.PUBLISHED[1]:
            commands[f"loadgen dataset fetch sharegpt --to {shlex.quote(str(path.parent))}"] = None
    if commands:
        yield Paragraph(prose("Download the data first, into the folder in which `loadgen` runs:"))
        yield Code("\n".join(commands), "bash")


def _described(load: RunSettings) -> str:
    if load.dataset_name == "random":
        data = (
            f"random prompts of {load.random_input_len} tokens, answers of "
            f"{load.random_output_len} tokens"
        )
    elif load.dataset_name == "sharegpt":
        data = "conversations of ShareGPT"
    else:
        data = f"{load.dataset_name} {load.dataset_path or ''}".strip()
    parts = [
        data,
        plural(load.num_prompts, "request") if load.num_prompts else f"{load.duration:g} s",
        *([f"{load.request_rate:g} req/s"] if math.isfinite(load.request_rate) else []),
        *([f"at most {load.max_concurrency} in flight"] if load.max_concurrency else []),
    ]
    return ", ".join(parts)


# What decides neither which requests are sent nor when: the name of a load, which its lengths say,
# how long the server is waited for, and the path, which vLLM's own tool wants beside the API.
NO_LOAD = ("workload", "ready_check_timeout_sec", "endpoint")


def client_command(run: RunSettings) -> tuple[str, str]:
    """Return a command, and the release of vLLM that it is of; empty: it is loadgen's.

    Args:
        run: The settings of the run.
    """
    given = serialize.explicit(run)
    for release in vllm_load.RELEASES:
        names = compat.tool_of(release).names
        fields = {name: value for name, value in given.items() if flag(name) in names}
        fields = {name: value for name, value in fields.items() if name not in NO_LOAD}
        if len(run.urls) > 1 or not _same(release, fields, run):
            continue
        # What the release does by itself need not be said.
        for name in [name for name in fields if name != "dataset_name"]:
            fewer = {other: value for other, value in fields.items() if other != name}
            fields = fewer if _same(release, fewer, run) else fields
        words = serialize.flags(RunSettings(**fields))
        words += [] if flag("dataset_name") in words else [flag("dataset_name"), run.dataset_name]
        words += [flag("endpoint"), run.endpoint or endpoints.find(run).path]
        return f"vllm bench serve {shlex.join(words)}", release
    return f"loadgen run {shlex.join(serialize.flags(run))}", ""


def _same(release: str, fields: dict[str, Any], run: RunSettings) -> bool:
    try:
        read = RunSettings(**compat.apply(release, fields))
    except BadInput:
        return False
    ignored = {name: getattr(run, name) for name in NO_LOAD}
    return read.replace(**ignored) == run
