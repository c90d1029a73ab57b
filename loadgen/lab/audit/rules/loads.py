"""Loads: what was sent and answered, against what the page, its client and its servers say."""

import math
from itertools import product

from loadgen.lab.audit.command import ServingCommand
from loadgen.lab.audit.finding import Finding, Findings
from loadgen.lab.audit.number import plain
from loadgen.lab.audit.study import PublishedArm, PublishedStudy, akin
from loadgen.lab.audit.workload import AnnouncedWorkload, ClientCommand

MAX_MISSING = 0.01  # of the tokens that were asked, or that another arm had
MIN_RATE_SHARE = 0.9  # of the throughput at which a server is idle but for the last answers
MAX_LENGTH_CHANGE = 0.05  # relative, of mean prompts: beyond it, arms were sent other prompts
# Of the asked rate; below it a server did not keep up, or the run was too short to tell.
MIN_KEPT_SHARE = 0.85
MIN_SENDING_S = 1
# Of the time of sending: a request that lives longer is no part of a steady state.
MIN_LIFE_SHARE = 0.15


def asked(study: PublishedStudy) -> Findings:
    """Replies are as long as they were asked to be, or as those of the other arms."""
    for arms in study.by_workload().values():
        first = arms[0]
        for arm in arms:
            lengths = arm.result.per_request()
            ok = arm.result["ok"]
            if lengths is None:
                continue
            workload = study.workload(arm)
            length = workload.output_tokens if workload and workload.fits(arm.result) else None
            tokens = arm.result["output_tokens"]
            first_tokens = first.result["output_tokens"]
            excess = abs((tokens / first_tokens).value - 1)
            if length is not None and lengths[1] < length * (1 - MAX_MISSING):
                share = lengths[1] / length
                should_be = plain(ok.value * length)
                off = 1 - share
                why = (
                    f"{100 * share:.1f}% of {ok} x {length}: replies ended early, and arms did "
                    "not do the same work"
                )
            elif length is None and first.result["ok"] == ok and excess > MAX_MISSING:
                should_be = ""
                off = excess
                why = "not the same work as in other arms"
            else:
                continue
            if tokens.value != first_tokens.value and first_tokens:
                why += f"; {first_tokens} at line {first.result.where('output_tokens').line}"
            place = arm.result.where("output_tokens")
            says = f"{tokens} output tokens"
            yield Finding(place, "work", says, should_be, why, True, "replies", off)


def rate_limited(study: PublishedStudy) -> Findings:
    """A throughput shows what a server can do, and not what it was sent."""
    for row, base, cell in study.pairs():
        arms = study.showing(base.get("total_per_s"))[:1]
        arms += study.showing(cell.get("total_per_s"))[:1]
        offered = []
        for arm in arms:
            rate, sending, duration, latency = _sending(study, arm)
            kept_up = sending + latency >= MIN_RATE_SHARE * duration and sending >= duration / 2
            if sending > 0 and kept_up:
                offered.append(rate)
        if not offered or len(arms) < 2:
            continue
        change = next(
            (q.change for part in row.cells if (q := part.get("total_per_s")) and q.change), None
        )
        which = "both servers were" if len(offered) == 2 else "one of the servers was"
        run_time = arms[-1].result["duration_s"]
        ok = arms[-1].result["ok"]
        why = (
            f"{row.name}: {which} sent {plain(offered[0])} req/s and answered them as they came "
            f"({ok} in {run_time} s): throughput is what was sent, and only latency tells of the "
            "server"
        )
        says, at = (change.text, change.at) if change else (f"{arms[-1].total} tok/s", row.at)
        yield study.note(at, "rate-limited", says, why, f"{offered[0]}")


def _sending(study: PublishedStudy, arm: PublishedArm) -> tuple[float, float, float, float]:
    """An arm's rate, /s, and its time of sending, duration and latency, s; NaN: unknown."""
    workload = study.workload(arm)
    result = arm.result
    rate = result["rate"].value if result["rate"] else workload.rate if workload else None
    rate = rate or math.nan
    return (
        rate,
        (result["ok"].value - 1) / rate,
        result["duration_s"].value,
        result.latency_s().value,
    )


def unsteady(study: PublishedStudy) -> Findings:
    """A ratio of two servers is of two that keep up with their requests."""
    reported: list[PublishedArm] = []
    for row, base, cell in study.pairs():
        change = next((q.change for q in cell.quantities if q.change), None)
        behind = [
            (arm, why) for arm in study.compared(row, base, cell) if (why := _behind(study, arm))
        ]
        for _, why in behind[:1]:
            at, says = (change.at, change.text) if change else (row.at, row.name)
            yield study.note(at, "unsteady", says, f"{row.name}: {why}", "unsteady", 1)
        reported += [arm for arm, _ in behind]
    for arm in study.arms:
        is_alone = arm.stage or arm.result["rate"]
        is_told = any(arm.result.same_run(earlier.result) for earlier in reported)
        if is_alone and not is_told and (why := _behind(study, arm)):
            yield Finding(
                arm.result.where("requests_per_s"), "unsteady", arm.name, "", why, True, "unsteady"
            )


def _behind(study: PublishedStudy, arm: PublishedArm) -> str:
    """How far a server stayed below the rate of its requests; empty if it kept up."""
    rate, sending, duration, latency = _sending(study, arm)
    done = arm.result["requests_per_s"].value
    # A rate at which all are sent at once is none.
    is_paced = sending >= (MIN_SENDING_S if arm.result["rate"] else duration / 2)
    if not (is_paced and done < MIN_KEPT_SHARE * rate and latency >= MIN_LIFE_SHARE * sending):
        return ""
    return (
        f"{arm.name} answered {done:g} of {rate:g} req/s, sent in {sending:.1f} s, and a request "
        f"took {latency:.2f} s: no steady state, the result depends on the length of the run"
    )


def announced(study: PublishedStudy) -> Findings:
    """Every workload that a page announces has a result."""
    if not study.arms or any(arm.result.per_request() is None for arm in study.arms):
        return
    random = [workload for workload in study.page.workloads if workload.input_tokens is not None]
    for workload in random:
        if not any(workload.fits(arm.result) for arm in study.arms):
            shape = f"{workload.input_tokens} tokens in, {workload.output_tokens} out"
            says = f"{workload.name}: {shape}" if workload.name else shape
            why = "no result on the page is of this workload"
            yield study.note(workload.at, "announced", says, why, shape, should_be="a result")


def failures(study: PublishedStudy) -> Findings:
    """As many requests succeed as the page sends, or as in the other arms of a workload."""
    short: set[float] = set()
    whole: list[tuple[PublishedArm, float]] = []
    # Those that were sent one workload: by the page's name, the announced workload and the cap.
    alike: dict[tuple[str, AnnouncedWorkload | None, float | None], list[PublishedArm]] = {}
    for name, named_arms in study.by_workload().items():
        for arm in named_arms:
            alike.setdefault((name, study.workload(arm), arm.binding_cap), []).append(arm)
    for arms in alike.values():
        succeeding = [(arm, ok.value) for arm in arms if (ok := arm.result["ok"])]
        most = max((succeeded for _, succeeded in succeeding), default=0)
        for arm, succeeded in succeeding:
            workload = study.workload(arm)
            failed = arm.result["failed"]
            announced_requests = workload.requests or 0 if workload else 0
            sent = max(most, announced_requests, succeeded + (failed.value if failed else 0))
            if succeeded < sent:
                short.add(succeeded)
                yield _failed(study, arm, succeeded, sent)
            else:
                whole.append((arm, succeeded))
    for arm, succeeded in whole:
        if succeeded in short and succeeded % 10:
            why = (
                f"{plain(succeeded)} is how many succeeded where more were sent, as other "
                "results of this page show"
            )
            says = f"{plain(succeeded)} requests"
            yield Finding(arm.result.where("ok"), "failures", says, "", why, True, "failed")


def _failed(study: PublishedStudy, arm: PublishedArm, ok: float, sent: float) -> Finding:
    why = f"{plain(ok)} / {plain(sent)} = {100 * ok / sent:.1f}% of the requests succeeded"
    whole = [candidate for candidate in study.tried if candidate.result["ok"].value == sent]
    prompts = [candidate.result.per_request() for candidate in (arm, *whole[:1])]
    if (
        len(prompts) == 2
        and prompts[0]
        and prompts[1]
        and abs(prompts[0][0] / prompts[1][0] - 1) > MAX_LENGTH_CHANGE
    ):
        why += (
            f", with {prompts[0][0]:.1f} input tokens each against {prompts[1][0]:.1f}: other "
            "prompts, no speed-up"
        )
    says = f"{plain(ok)} requests"
    weight = 1 - ok / sent
    return Finding(
        arm.result.where("ok"), "failures", says, plain(sent), why, True, "failed", weight
    )


def clients(study: PublishedStudy) -> Findings:
    """The client of a result asks for the model of its server, at its port."""
    page = study.page
    senders = [client for client in page.clients if not client.tool.starts_servers]
    servers = [command for command in page.commands if command.engine]
    told: set[tuple[int, str]] = set()
    for arm in study.arms:
        beside = [arm.command] if arm.command.engine else page.near(servers, arm.result.at)
        for client, rule in product(page.near(senders, arm.result.at)[-1:], (_port, _model)):
            differing = [rule(client, server) for server in beside]
            if not all(differing) or not beside or (client.at, differing[-1][0]) in told:
                continue
            says, should_be, why = differing[-1]
            told.add((client.at, says))
            why += f" (line {page.place(beside[-1].at).line})"
            yield study.note(client.at, "client", says, why, should_be=should_be)


def _port(client: ClientCommand, server: ServingCommand) -> tuple[str, ...]:
    """What the client says, should say, and why; empty where it may reach the server."""
    if not (client.port and server.port) or client.port == server.port:
        return ()
    why = f"its server, {server.engine}, listens on port {server.port}"
    return f"port {client.port}", server.port, why


def _model(client: ClientCommand, server: ServingCommand) -> tuple[str, ...]:
    """What the client says, should say, and why; empty where the server may answer."""
    requested = client.model.removeprefix("./")
    served = server.served_name.removeprefix("./")
    name = requested.rpartition("/")[2]
    if not (served and requested) or served in (requested, name) or not akin(server.name, name):
        return ()
    return requested, served, f"its server has {served} and refuses other names"
