"""Identity: the model and hardware of a page, and whether its commands are those of its results."""

import difflib
import re
from collections.abc import Iterator

from loadgen.lab.audit.command import setting_text
from loadgen.lab.audit.engine_flags import TABLES
from loadgen.lab.audit.finding import Findings
from loadgen.lab.audit.number import plain
from loadgen.lab.audit.study import PublishedStudy, akin

# A name that ends in a number of parameters, and what stands behind that.
MODEL = re.compile(r"(?<![\w.-])[A-Za-z][\w.]*(?:-[\w.]+)*?-\d+(?:\.\d+)?[BbMm]\b(?:-\w+)*")
RECOMMENDATION = re.compile(r"\b[Rr]ecommend[^\n`|?!]{0,200}")
QUANTIZED = re.compile(
    r"(?i)\b(?:FP8|FP4|NVFP4|INT8|INT4|AWQ|GPTQ|W8A8|W4A16|quantiz\w+)\b|-FP8|-AWQ|-GPTQ|w8a8"
)
# And no family of several versions.
ONE_MODEL = re.compile(r"(?!.*\d\.?[xX]\b)(?:[\w-]+/)?[\w.-]*\d[\w.-]*")
# A version of a family, alone or with others in brackets: Foo-4.6, Foo-4.x (4.5 and 4.6).
VERSION = re.compile(
    r"(?<![\w.-])([A-Za-z]+-?[A-Za-z]?)(\d+\.(?:\d+|x))(?![\w.])(?:\s*\(([\d., and]+)\))?"
)
MIN_LIKENESS = 0.6  # of the letters of two names: below it one is no version of the other
NUMBERS = {"a": 1, "a single": 1, "one": 1, "two": 2, "four": 4, "eight": 8, "sixteen": 16}
_MAKER = r"(?:NVIDIA|AMD|Ascend|Intel|GPUs?\b|NPUs?\b)"
COUNT = re.compile(
    rf"(?:^|\s)(\d+)\s*(?:x|×|Ã—|\*|{_MAKER}|devices?\b)|(?:[A-Za-z]\d{{2,4}}[A-Z]?|\s)[x×*]\s?(\d+)\b",
    re.IGNORECASE,
)
DEVICE = re.compile(r"\b(?:[ABHL]\d{2,3}|GB\d{3}|MI\d{3}X?|910[BC]|L40S?)\b")


def misread(study: PublishedStudy) -> Findings:
    """Every word of a command reaches it, and a serving script starts a server."""
    for flaw in study.page.flaws:
        yield study.finding(flaw.at, "shell", f"`{' '.join(flaw.text.split())}`", "", flaw.why)


def values(study: PublishedStudy) -> Findings:
    """A serving script has the values that the results below it are of."""
    for command in study.page.commands:
        differing = {}
        for arm in study.arms:
            changes = arm.command.changes(command) if arm.command.at == command.at else {}
            for name, (before, to) in changes.items():
                if before is not None and to is not None:
                    differing[setting_text(name, to)] = arm.result.place.line
        if differing:
            why = (
                "results below it are of "
                f"{', '.join(f'{name} (line {line})' for name, line in differing.items())}"
            )
            yield study.note(command.at, "script", f"`{command.text}`", why, "values")


def prompts(study: PublishedStudy) -> Findings:
    """The only command that sends random prompts sends as many as the results have."""
    clients = [item for item in study.page.clients if item.dataset == "random"]
    sent = clients[0].number("num-prompts") if len(clients) == 1 else None
    random = [item for item in study.page.workloads if item.input_tokens is not None]
    if sent is None:
        return
    # Less than what was sent, and no round number, is what succeeded of it.
    succeeded = [(ok.value, arm.result) for arm in study.arms if (ok := arm.result["ok"])]
    counts = {
        plain(ok): result.place.line
        for ok, result in reversed(succeeded)
        if ok != sent and (ok > sent or ok % 10 == 0) and any(item.fits(result) for item in random)
    }
    if counts:
        why = (
            f"results have {', '.join(f'{count} (line {line})' for count, line in counts.items())}"
        )
        yield study.note(clients[0].at, "script", f"--num-prompts {sent}", why, "prompts")


def engines(study: PublishedStudy) -> Findings:
    """A stage that is named after an engine, and no other, has a command of that engine."""
    for stage in study.stages:
        named = [engine for engine in TABLES if engine.lower() in stage.title.lower()]
        shown = [
            command for command in study.page.commands if command.at in stage and command.engine
        ]
        if len(named) == 1 and shown and all(command.engine != named[0] for command in shown):
            why = f"its command starts {shown[0].engine}: `{shown[0].text}`"
            yield study.finding(shown[0].at, "label", stage.title, "", why, "engine")


def models(study: PublishedStudy) -> Findings:
    """Title, recommendation and commands name the page's model, or a variant of it."""
    page = study.page
    names = []
    if stated := page.titled("Model"):
        names.append((_first(stated[0]), stated[1]))
    for text, begin in _promises(study):
        names += [(_bare(match[0]), begin + match.start()) for match in MODEL.finditer(text)]
    names += [(_first(command.name), command.at) for command in page.commands]
    names += [(_first(client.model), client.at) for client in page.clients]
    named = [(name, at) for name, at in names if name]
    subject = _subject(study, [name for name, _ in named])
    if not subject:
        return
    places = set(named)
    # A name that tells no size, and is like the subject's, is another version of it.
    for command in page.commands:
        likeness = difflib.SequenceMatcher(None, command.name, subject).ratio()
        if not _first(command.name) and likeness >= MIN_LIKENESS:
            places.add((command.name, command.at))
    for name, at in sorted(places, key=lambda place: place[1]):
        if not akin(name, subject):
            yield study.finding(
                at, "model", name, subject, f"the page is about {subject}", f"{name} {at}"
            )


def claimed(study: PublishedStudy) -> Findings:
    """Every version of a family that title or recommendation names was run."""
    run = " ".join(command.name.lower() for command in study.page.commands)
    for text, begin in _promises(study):
        for mention in VERSION.finditer(text):
            family = mention[1]
            versions = [mention[2], *re.findall(r"\d+\.\d+", mention[3] or "")]
            not_run = [
                version
                for version in versions
                if not re.search(rf"{re.escape(family.lower() + version)}(?![\d.])", run)
            ]
            names = [f"{family}{version}" for version in not_run if not version.endswith("x")]
            if names and family.lower() in run:
                says = " and ".join(names)
                why = "no command on the page serves it"
                yield study.note(begin + mention.start(), "model", says, why, f"claimed {says}")


def _promises(study: PublishedStudy) -> Iterator[tuple[str, int]]:
    """The title, and what recommends before the first command, with their places."""
    page = study.page
    if page.sections:
        yield page.sections[0].title, page.sections[0].begin
    # What stands before the first command recommends that; later on a page may recommend a draft
    # model, or another.
    first = page.commands[0].at if page.commands else len(page.prose)
    yield from (
        (sentence[0], sentence.start())
        for sentence in RECOMMENDATION.finditer(page.prose, 0, first)
    )


def _subject(study: PublishedStudy, named: list[str]) -> str:
    """The model that a page says it is about, or the one that most of its names mean."""
    stated = statement[0].strip("- *\n") if (statement := study.page.titled("Model")) else ""
    if not named:
        return stated.rpartition("/")[2] if ONE_MODEL.fullmatch(stated) else ""
    votes = [len([voter for voter in named if akin(name, voter)]) for name in named]
    stated_name = _first(stated)
    if stated_name and 2 * len([name for name in named if akin(stated_name, name)]) >= max(votes):
        return stated_name
    return min(
        (name for name, vote in zip(named, votes, strict=True) if vote == max(votes)), key=len
    )


def advice(study: PublishedStudy) -> Findings:
    """What a page recommends it has run: a quantized model, if it recommends quantization."""
    page = study.page
    run = " ".join(
        [*(command.text for command in page.commands), *(stage.title for stage in study.stages)]
    )
    if not study.arms or QUANTIZED.search(run):
        return
    for sentence in RECOMMENDATION.finditer(page.prose):
        if quantized := QUANTIZED.search(sentence[0]):
            why = "no quantized model was run: what it would bring on this page's load is unknown"
            yield study.note(
                sentence.start() + quantized.start(), "advice", quantized[0], why, "quantization"
            )


def hardware(study: PublishedStudy) -> Findings:
    """The devices are counted, are those that are recommended, and no server takes more."""
    stated = study.page.titled("Hardware")
    if stated is None or not stated[0] or stated[0].startswith('"'):
        return  # nothing is said, or the words of others are quoted
    hardware_text = stated[0].split("\n")[0].strip("- *")
    at = stated[1]
    devices = set(DEVICE.findall(hardware_text))
    measured_on = f"the page was measured on {hardware_text}"
    for text, begin in _promises(study) if devices else ():
        for match in DEVICE.finditer(text):
            if match[0] not in devices:
                should_be = ", ".join(sorted(devices))
                yield study.finding(
                    begin + match.start(), "hardware", match[0], should_be, measured_on, match[0]
                )
    counted = next(
        filter(None, map(_count, (hardware_text, *(text for text, _ in _promises(study))))), None
    )
    if counted is None:
        why = "the number of devices is unknown, and so is the throughput of each"
        count = "a number of devices"
        yield study.note(at, "hardware-count", hardware_text, why, should_be=count)
        return
    widest = max(study.page.commands, key=lambda command: command.width, default=None)
    if widest is not None and widest.width > counted:
        line = study.page.place(widest.at).line
        why = f"`{widest.text}` at line {line} takes {widest.width} devices"
        yield study.finding(at, "hardware", hardware_text, f"{widest.width} devices", why)


def _count(text: str) -> int | None:
    for word, number in NUMBERS.items():
        if text.lower().startswith(word + " "):
            return number
    match = COUNT.search(text)
    return int(match[1] or match[2]) if match else None


def _first(text: str) -> str:
    match = MODEL.search(text)
    return _bare(match[0]) if match else ""


def _bare(name: str) -> str:
    """A name without the device that a page is about, which titles have behind the model."""
    return re.sub(rf"(?i)-(?:{DEVICE.pattern[2:-2]})$", "", name)
