"""Identity: the model and the hardware that a page is about, wherever it names them."""

import re
from collections.abc import Iterator

from loadgen.analysis.audit.finding import Finding
from loadgen.analysis.audit.study import Study

# A name that ends in a number of parameters, and what stands behind that.
MODEL = re.compile(r"(?<![\w.-])[A-Za-z][\w.]*(?:-[\w.]+)*?-\d+(?:\.\d+)?[BbMm]\b(?:-\w+)*")
RECOMMENDATION = re.compile(r"\b[Rr]ecommend[^\n`|?!]{0,200}")
BENCHMARK = re.compile(r"\b(?:bench serve|bench_serving|guidellm)\b[^\n]{0,2000}?--model[ =](\S+)")
NUMBERS = {"a single": 1, "one": 1, "two": 2, "four": 4, "eight": 8, "sixteen": 16}
COUNT = re.compile(r"(?:^|\s)(\d+)\s*(?:x|×|Ã—|\*|NVIDIA|AMD|Ascend|GPUs?\b|NPUs?\b)", re.IGNORECASE)


def models(study: Study) -> Iterator[Finding]:
    """Title, recommendation and commands name the model that the page is about, or a variant of it."""
    page = study.page
    stated = page.titled("Model")
    title = page.sections[0] if page.sections else None
    subject = _first(stated[0]) if stated else ""
    subject = subject or (_first(title.title) if title else "")
    if not subject:
        return
    named = [(match[0], title.begin + match.start()) for match in MODEL.finditer(title.title)] if title else []
    # What stands before the first command recommends that; later on a page may recommend a draft model, or another.
    first = page.commands[0].at if page.commands else len(page.prose)
    for sentence in RECOMMENDATION.finditer(page.prose, 0, first):
        named += [(match[0], sentence.start() + match.start()) for match in MODEL.finditer(sentence[0])]
    named += [(_first(command.name), command.at) for command in page.commands]
    named += [(_first(match[1]), match.start(1)) for match in BENCHMARK.finditer(page.text)]
    for name, at in named:
        if name and not _akin(name, subject):
            yield Finding(page.place(at), "model", name, subject, f"the page is about {subject}")


def hardware(study: Study) -> Iterator[Finding]:
    """The devices that a page has are counted, and no server takes more."""
    stated = study.page.titled("Hardware")
    if stated is None or not stated[0]:
        return
    said, at = stated[0].split("\n")[0], stated[1]
    counted = _count(said)
    if counted is None:
        why = "the number of devices is unknown, and so is the throughput of each"
        yield Finding(study.page.place(at), "hardware-count", said, "a number of devices", why, note=True)
        return
    widest = max((command for command in study.page.commands), key=lambda command: command.width, default=None)
    if widest is not None and widest.width > counted:
        line = study.page.place(widest.at).line
        why = f"`{widest.text}` at line {line} takes {widest.width} devices"
        yield Finding(study.page.place(at), "hardware", said, f"{widest.width} devices", why)


def _count(said: str) -> int | None:
    for word, number in NUMBERS.items():
        if said.lower().startswith(word + " "):
            return number
    found = COUNT.search(said)
    return int(found[1]) if found else None


def _first(text: str) -> str:
    """The first model that is named, without its owner."""
    found = MODEL.search(text)
    return found[0] if found else ""


def _akin(name: str, subject: str) -> bool:
    """Whether one is the other, or a variant of it: the same name with more behind a dash."""
    longer, shorter = sorted((name.lower(), subject.lower()), key=len, reverse=True)
    return longer == shorter or longer.startswith((f"{shorter}-", f"{shorter}_"))
