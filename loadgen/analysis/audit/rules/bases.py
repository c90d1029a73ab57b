"""Bases: what the candidates of a stage change, and whether that is what the stage says."""

import re
from collections.abc import Iterator, Mapping

from loadgen.analysis.audit.command import INTERFACE, WIDTHS, setting_text
from loadgen.analysis.audit.finding import Finding
from loadgen.analysis.audit.number import change
from loadgen.analysis.audit.page import Section
from loadgen.analysis.audit.published import Published
from loadgen.analysis.audit.study import JOINED, PublishedArm, PublishedStudy, stems

Changes = Mapping[str, tuple[str | None, str | None]]
OFF_WORDS = ("turn off", "turning off", "disable", "disabling", "without", "no ", "off")
# Words of titles for settings that have other words in them.
SYNONYMS = {
    "paral": {"tensor", "pipeline", "data", "expert", "parallel", "enable-dp-attention", "moe"},
    "tp": {"tensor"},
    "pp": {"pipeline"},
    "dp": {"data", "enable-dp-attention"},
    "ep": {"expert"},
    "quant": {"quantization", "kv", "dtype", "model"},
    "fp": {"quantization", "kv", "dtype", "model"},
    "int": {"quantization", "model"},
    "awq": {"quantization", "model"},
    "gptq": {"quantization", "model"},
    "model": {"model"},
    "dtype": {"kv"},
    "conte": {"context"},
    "chunk": {"chunked", "batched", "prefill"},
    "batch": {"batched", "seqs", "running"},
    "token": {"batched"},
    "seqs": {"seqs"},
    "runni": {"seqs"},
    "seque": {"seqs"},
    "specu": {"speculative"},
    "mtp": {"speculative"},
    "eagle": {"speculative"},
    "memor": {"memory", "mem"},
    "cache": {"cache", "kv"},
    "deepe": {"moe-a2a-backend", "deepep-mode"},
    "deepg": {"deep_gemm", "dg_enabled"},
}


def bases(study: PublishedStudy) -> Iterator[Finding]:
    """A candidate is the best so far with one change, and has nothing of what was rejected."""
    best: PublishedArm | None = None
    rejected: dict[str, tuple[str | None, str]] = {}
    for stage, arms in study.staged() if not study.repeated else ():
        before = [arm for arm in study.tried if arm.result.at < stage.begin]
        for arm in arms or _crashed(study, stage):
            if best is not None and _comparable(best, arm):
                yield from _carried(study, arm, best, rejected)
                yield from _missing(study, arm, best)
                yield from _uncredited(study, arm, best, best, rejected)
            elif best is not None and (own := study.best([each for each in before if _comparable(each, arm)])):
                yield from _uncredited(study, arm, best, own, rejected)
        winner = study.best([*arms, *([best] if best else [])])
        for arm in arms:
            if winner is not None and arm is not winner and _comparable(winner, arm):
                tried = {name: to for name, (_, to) in _changes(arm, winner).items() if to is not None}
                rejected |= {name: (to, stage.title) for name, to in tried.items() if _names(arm, name, to)}
        best = winner


def _crashed(study: PublishedStudy, stage: Section) -> list[PublishedArm]:
    """The candidates of a stage in which none has a result."""
    within = [command for command in study.page.commands if stage.begin <= command.at < stage.end]
    nothing = [Published({}, {}, study.page.place(command.at), at=command.at) for command in within]
    return [PublishedArm(each, command, stage.title, stage, "") for each, command in zip(nothing, within, strict=True)]


def _comparable(first: PublishedArm, second: PublishedArm) -> bool:
    commands = first.command, second.command
    return all(c is not None and c.text for c in commands) and bool(commands[0].engines & commands[1].engines)  # type: ignore[union-attr]


def _changes(arm: PublishedArm, base: PublishedArm) -> dict[str, tuple[str | None, str | None]]:
    return arm.command.changes(base.command) if arm.command and base.command else {}


def _carried(
    study: PublishedStudy, arm: PublishedArm, best: PublishedArm, rejected: Mapping[str, tuple[str | None, str]]
) -> Iterator[Finding]:
    """A setting that an earlier stage tried and that did not win."""
    for name, (_, to) in _changes(arm, best).items():
        value, stage = rejected.get(name, (None, ""))
        if to is not None and value == to and arm.stage and stage != arm.stage.title and not _names(arm, name, to):
            why = f"it has {setting_text(name, to)}, with which {stage} did not win: two changes are tried at once"
            yield Finding(arm.result.place, "base", arm.name, "", why, True, f"carried {name}")


def _missing(study: PublishedStudy, arm: PublishedArm, best: PublishedArm) -> Iterator[Finding]:
    """Settings of the best so far that a candidate lacks, though its stage is about something else."""
    lost = {
        name: before
        for name, (before, to) in _changes(arm, best).items()
        if before is not None and to is None and not _names(arm, name, before) and name not in INTERFACE
    }
    earlier = [other for other in study.tried if other.result.at < arm.result.at and _comparable(other, arm)]
    is_combination = arm.stage is not None and JOINED in arm.stage.title  # whose title says what it is built of
    # Some pages hold each candidate to a default; others build on what won, from the first that does so.
    if lost and not is_combination and any(_builds_on(study, each, earlier) for each in (*earlier, arm)):
        said = ", ".join(setting_text(name, value) for name, value in lost.items())
        why = f"it is not built on the best so far, {best.name} with {best.total} tok/s, which has {said}"
        yield Finding(arm.result.place, "base", arm.name, "", why, True, f"not on {best.name}")


def _builds_on(study: PublishedStudy, arm: PublishedArm, earlier: list[PublishedArm]) -> bool:
    """Whether a candidate has a setting of an earlier stage that neither the first one has nor its own title names."""
    settings = arm.command.settings if arm.command else {}
    own = {(name, value) for name, value in settings.items() if not _names(arm, name, value)}
    before = [other for other in earlier if other.stage and arm.stage and other.stage.begin < arm.stage.begin]
    tried = {item for other in before if other.command for item in other.command.settings.items()}
    first = study.tried[0].stage
    default = {
        item for other in before if other.stage == first and other.command for item in other.command.settings.items()
    }
    return bool(own & tried - default)


def _uncredited(
    study: PublishedStudy,
    arm: PublishedArm,
    best: PublishedArm,
    base: PublishedArm,
    rejected: Mapping[str, tuple[str | None, str]],
) -> Iterator[Finding]:
    """A gain for which a title names one change, where the candidate has others, too.

    Its changes are those from `base`: the best so far, or the best of its engine; what the best so far has is none.
    """
    same_model = arm.command and best.command and arm.command.name.lower() == best.command.name.lower()
    changed = {
        name: to
        for name, (_, to) in _changes(arm, base).items()
        if to is not None and rejected.get(name, (None, ""))[0] != to  # which is told by itself
        if name != "model" or not same_model
    }
    others = [name for name, to in changed.items() if not _names(arm, name, to)]
    scores = study.score(arm), study.score(best)
    is_idle = all(name in INTERFACE for name in changed)
    if not 0 < len(others) < len(changed) or is_idle:
        return
    if scores[0] is None or scores[1] is None or not scores[0].above(scores[1]):
        return
    ratio = change(scores[0].value / scores[1].value)
    said = ", ".join(setting_text(name, changed[name]) for name in others)
    why = f"its {ratio} over {best.name} is credited to what its title names, and it changes {said}, too"
    yield Finding(arm.result.place, "label", arm.name, "", why, True, f"credited {said}")


def _names(arm: PublishedArm, setting: str, value: str | None) -> bool:
    """Whether the title of a stage or the label of an arm names a setting, or its value."""
    said = f"{arm.stage.title if arm.stage else ''} {arm.label}".lower()
    words = stems(said)
    parts = {part for part in setting.lower().replace("_", "-").split("-") if len(part) > 1}
    if words & stems(setting.replace("_", " ").replace("-", " ")) or (value and value.lower() in said):
        return True
    meant = set().union(*(SYNONYMS.get(word, set()) for word in words))
    return bool(meant & {*parts, setting.lower()}) or any(each in setting.lower() for each in meant if "_" in each)


def idle_options(study: PublishedStudy) -> Iterator[Finding]:
    """A gain is of something that can change anything: a limit that is never reached changes nothing."""
    best: PublishedArm | None = None
    for _, arms in study.staged() if not study.repeated else ():
        for arm in arms if best is not None else ():
            if best is not None and best.command is not None and arm.command is not None:
                yield from _idle(study, arm, best)
        best = study.best([*arms, *([best] if best else [])])


def _idle(study: PublishedStudy, arm: PublishedArm, best: PublishedArm) -> Iterator[Finding]:
    peak = max((n.value for name in ("cap", "peak_in_flight") if (n := arm.result.get(name))), default=None)
    scores = study.score(arm), study.score(best)
    if arm.command is None or best.command is None or not arm.command.text or arm.same_server(best):
        return
    if not arm.command.engines & best.command.engines or not scores[0] or not scores[1]:
        return
    changed = _changes(arm, best)
    by = scores[0].value / scores[1].value
    if peak is not None and arm.command.binding(peak).same_as(best.command.binding(peak)):
        limit = " and ".join(setting_text(name, to) for name, (_, to) in changed.items() if to is not None)
        why = f"{limit} is never reached by {peak:g} in flight: {change(by)} over {best.name} is noise"
        if limit:
            yield Finding(arm.result.place, "idle-option", arm.name, "", why, True, "never reached", by)
    elif changed and all(name in INTERFACE and name not in WIDTHS for name in changed) and by > 1:
        said = ", ".join(setting_text(name, to or "") for name, (_, to) in changed.items())
        why = f"{said} only changes how answers are read: {change(by)} over {best.name} has another cause"
        yield Finding(arm.result.place, "idle-option", arm.name, "", why, True, weight=by - 1)


def turned_off(study: PublishedStudy) -> Iterator[Finding]:
    """A stage that is named after a feature turns it on."""
    for arm in study.tried:
        if arm.command is None or arm.stage is None:
            continue
        said = f"{arm.stage.title} {arm.label}".lower()
        for name, feature in arm.command.turned_off().items():
            words = stems(feature.replace("-", " ").replace("_", " "))
            run_on = "".join(re.findall("[a-z]", feature.lower()))
            about = stems(arm.stage.title)
            is_named = words & about or any(len(stem) > 3 and stem in run_on for stem in about)
            is_named = is_named and not any(word in said for word in OFF_WORDS)
            if is_named and name.lower().replace("_", "-") not in said.replace("_", "-"):
                value = {**arm.command.flags, **arm.command.env}[name]
                why = f"{setting_text(name, value)} turns it off: {arm.settings}"
                yield Finding(arm.result.place, "turned-off", arm.name, "", why, True)
