"""Scripts: what a shell makes of the commands of a page, and whether its results were measured with them."""

from loadgen.lab.audit.command import setting_text
from loadgen.lab.audit.engine_flags import TABLES
from loadgen.lab.audit.finding import Findings
from loadgen.lab.audit.number import plain
from loadgen.lab.audit.study import PublishedStudy


def misread(study: PublishedStudy) -> Findings:
    """Every word of a command reaches it, as it is printed, and a serving script starts a server."""
    for flaw in study.page.flaws:
        yield study.finding(flaw.at, "shell", f"`{' '.join(flaw.text.split())}`", "", flaw.why)


def values(study: PublishedStudy) -> Findings:
    """A serving script has the values that the results below it are of."""
    for command in study.page.commands:
        others = {
            setting_text(name, to): arm.result.place.line
            for arm in study.arms
            if arm.command.at == command.at
            for name, (before, to) in arm.command.changes(command).items()
            if before is not None and to is not None
        }
        if others:
            why = f"results below it are of {', '.join(f'{name} (line {line})' for name, line in others.items())}"
            yield study.note(command.at, "script", f"`{command.text}`", why, "values")


def prompts(study: PublishedStudy) -> Findings:
    """The only command that sends random prompts sends as many as the results have."""
    clients = [each for each in study.page.clients if each.dataset == "random"]
    sent = clients[0].number("num-prompts") if len(clients) == 1 else None
    random = [each for each in study.page.workloads if each.input_tokens is not None]
    if sent is None:
        return
    # Less than what was sent, and no round number, is what succeeded of it.
    known = [(ok.value, arm.result) for arm in study.arms if (ok := arm.result["ok"])]
    counts = {
        plain(ok): result.place.line
        for ok, result in reversed(known)
        if ok != sent and (ok > sent or ok % 10 == 0) and any(each.fits(result) for each in random)
    }
    if counts:
        why = f"results have {', '.join(f'{count} (line {line})' for count, line in counts.items())}"
        yield study.note(clients[0].at, "script", f"--num-prompts {sent}", why, "prompts")


def engines(study: PublishedStudy) -> Findings:
    """A stage that is named after an engine, and no other, has a command of that engine."""
    for stage in study.stages:
        named = [engine for engine in TABLES if engine.lower() in stage.title.lower()]
        shown = [each for each in study.page.commands if each.at in stage and each.engine]
        if len(named) == 1 and shown and all(each.engine != named[0] for each in shown):
            why = f"its command starts {shown[0].engine}: `{shown[0].text}`"
            yield study.finding(shown[0].at, "label", stage.title, "", why, "engine")
