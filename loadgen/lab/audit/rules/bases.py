"""Bases: what the candidates of a stage change, and whether that is what the stage says."""

from collections.abc import Iterable
from itertools import chain

from loadgen.lab.audit.command import INTERFACE, setting_text
from loadgen.lab.audit.finding import Findings
from loadgen.lab.audit.number import change
from loadgen.lab.audit.page import Section
from loadgen.lab.audit.published import Published
from loadgen.lab.audit.study import JOINED, PublishedArm, PublishedStudy, stems

# Settings that did not win: name to value and the title of the stage.
Rejected = dict[str, tuple[str, str]]
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


def bases(study: PublishedStudy) -> Findings:
    """A candidate is the best so far with one change, and has nothing of what was rejected."""
    best: PublishedArm | None = None
    rejected: Rejected = {}
    for stage, arms in study.staged():
        for arm in arms or _crashed(study, stage):
            if best and _comparable(best, arm):
                yield from _carried(arm, best, rejected)
                yield from _missing(study, arm, best)
                yield from _uncredited(study, arm, best, best, rejected)
            elif best and (
                rival := study.best(
                    earlier for earlier in study.before(stage) if _comparable(earlier, arm)
                )
            ):
                yield from _uncredited(study, arm, best, rival, rejected)
        best = study.best([*arms, best])
        for arm in arms:
            if best and arm is not best and _comparable(best, arm):
                tried = _changed(arm, best).items()
                rejected |= {name: (to, stage.title) for name, to in tried if _names(arm, name, to)}


def _crashed(study: PublishedStudy, stage: Section) -> list[PublishedArm]:
    return [
        PublishedArm(
            Published({}, {}, study.page.place(command.at), at=command.at),
            command,
            stage.title,
            stage,
            "",
        )
        for command in study.page.commands
        if command.at in stage
    ]


def _comparable(first: PublishedArm, second: PublishedArm) -> bool:
    left = first.command
    right = second.command
    return bool(left.text and right.text and left.engines & right.engines)


def _changed(arm: PublishedArm, base: PublishedArm) -> dict[str, str]:
    return {
        name: to for name, (_, to) in arm.command.changes(base.command).items() if to is not None
    }


def _settings_text(settings: Iterable[tuple[str, str]]) -> str:
    return ", ".join(setting_text(*setting) for setting in settings)


def _carried(arm: PublishedArm, best: PublishedArm, rejected: Rejected) -> Findings:
    """A setting that an earlier stage tried and that did not win."""
    for name, to in _changed(arm, best).items():
        value, stage = rejected.get(name, (None, ""))
        if value == to and stage != arm.stage.title and not _names(arm, name, to):
            why = (
                f"it has {setting_text(name, to)}, with which {stage} did not win: two changes "
                "are tried at once"
            )
            yield arm.note("base", why, f"carried {name}")


def _missing(study: PublishedStudy, arm: PublishedArm, best: PublishedArm) -> Findings:
    """Settings of the best so far that a candidate of another stage lacks."""
    lost = {
        name: before
        for name, (before, to) in arm.command.changes(best.command).items()
        if before is not None
        and to is None
        and not _names(arm, name, before)
        and name not in INTERFACE
    }
    earlier = [
        tried
        for tried in study.tried
        if tried.result.at < arm.result.at and _comparable(tried, arm)
    ]
    is_combination = JOINED in arm.stage.title  # which says what it is built of
    # Some pages hold each candidate to a default; others build on what won, from the first that
    # does so.
    if (
        lost
        and not is_combination
        and any(_builds_on(study, candidate, earlier) for candidate in (*earlier, arm))
    ):
        settings = _settings_text(lost.items())
        why = (
            f"it is not built on the best so far, {best.name} with {best.total} tok/s, which "
            f"has {settings}"
        )
        yield arm.note("base", why, f"not on {best.name}")


def _builds_on(study: PublishedStudy, arm: PublishedArm, earlier: list[PublishedArm]) -> bool:
    """Whether a candidate has a setting of an earlier stage that is not of the first one."""
    settings = {
        (name, value)
        for name, value in arm.command.settings.items()
        if not _names(arm, name, value)
    }
    before = [candidate for candidate in earlier if candidate.stage.begin < arm.stage.begin]
    first = [candidate for candidate in before if candidate.stage == study.tried[0].stage]
    tried, default = (
        set(chain.from_iterable(candidate.command.settings.items() for candidate in arms))
        for arms in (before, first)
    )
    return bool(settings & tried - default)


def _uncredited(
    study: PublishedStudy,
    arm: PublishedArm,
    best: PublishedArm,
    base: PublishedArm,
    rejected: Rejected,
) -> Findings:
    """A gain for which a title names one change, where the candidate has others, too.

    Its changes are those from `base`: the best so far, or the best of its engine; what the best so
    far has is none.
    """
    same_model = arm.command.name.lower() == best.command.name.lower()
    changed = {
        name: to
        for name, to in _changed(arm, base).items()
        if rejected.get(name, (None, ""))[0] != to  # which is told by itself
        if name != "model" or not same_model
    }
    unnamed = {name: to for name, to in changed.items() if not _names(arm, name, to)}
    gain = study.gain(arm, best)
    if 0 < len(unnamed) < len(changed) and not changed.keys() <= set(INTERFACE) and gain.above(1):
        settings = _settings_text(unnamed.items())
        by = change(gain.value)
        why = (
            f"its {by} over {best.name} is credited to what its title names, and it changes "
            f"{settings}, too"
        )
        yield arm.note("label", why, f"credited {settings}")


def _names(arm: PublishedArm, setting: str, value: str) -> bool:
    """Whether the title of a stage or the label of an arm names a setting, or its value."""
    text = f"{arm.stage.title} {arm.label}".lower()
    words = stems(text)
    parts = {part for part in setting.lower().replace("_", "-").split("-") if len(part) > 1}
    if words & stems(setting.replace("_", " ").replace("-", " ")) or (
        value and value.lower() in text
    ):
        return True
    meant = set().union(*(SYNONYMS.get(word, set()) for word in words))
    return bool(meant & {*parts, setting.lower()}) or any(
        synonym in setting.lower() for synonym in meant if "_" in synonym
    )


def idle_options(study: PublishedStudy) -> Findings:
    """A gain is not of a limit that is never reached."""
    best: PublishedArm | None = None
    for _, arms in study.staged():
        for arm in arms:
            if (
                not best
                or not arm.command.text
                or not arm.command.engines & best.command.engines
                or arm.same_server(best)
                or not (gain := study.gain(arm, best))
            ):
                continue
            by = gain.value
            peaks = [n.value for name in ("cap", "peak_in_flight") if (n := arm.result[name])]
            peak = max(peaks, default=None)
            changed = arm.command.changes(best.command)
            if peak is not None and arm.command.binding(peak).same_as(best.command.binding(peak)):
                settings = _changed(arm, best).items()
                limit = " and ".join(setting_text(name, to) for name, to in settings)
                why = (
                    f"{limit} is never reached by {peak:g} in flight: {change(by)} over "
                    f"{best.name} is noise"
                )
                if limit:
                    yield arm.note("idle-option", why, "never reached", by)
            elif changed and changed.keys() <= set(INTERFACE) and by > 1:
                text = ", ".join(setting_text(name, to) for name, (_, to) in changed.items())
                why = (
                    f"{text} only changes how answers are read: {change(by)} over {best.name} has "
                    "another cause"
                )
                yield arm.note("idle-option", why, weight=by - 1)
        best = study.best([*arms, best])
