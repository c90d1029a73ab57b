"""Blocks: the fenced blocks of a page, and what the comments in front of them say of how they are
run.

    <!-- needs: accelerator -->      it is not run, since it needs what a test has not: a word of
    NEEDS <!-- run by: tests/a/test_b.py -->    that test runs it, and names the page <!--
    background -->              it goes on while what follows is run: a server <!-- continues -->
    Python that goes on where the block of Python before it ended <!-- file: study.yaml -->
    it is written to this file, which later blocks read <!-- exit: 6 -->                 the code
    with which it ends, where that is not 0

A comment stands on the line in front of the fence, so it is not seen where the page is shown.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from tests.helpers.source import ROOT

# Text is nobody's to run: output, formulas.
LANGUAGES = ("bash", "python", "yaml", "json", "toml", "dockerfile", "text")
NEEDS = {
    "accelerator": "a GPU or an NPU, and the engine that serves on it",
    "engine": "an inference engine, and a model",
    "environment": "packages or images to be installed or built, or a clone",
    "hub": "the Hugging Face hub, or another place on the network",
    "minutes": "more time than a test has",
    "others": "a server, a tool or a file of somebody else's",
    "ray": "a cluster of Ray",
}
# By loadgen itself, whose reports have tests of their own.
WRITTEN = ("llamacpp-study/llamacpp.md",)
FENCE = re.compile(r"^(?P<indent> *)```(?P<language>[\w-]*)$")
MARK = re.compile(r"^ *<!-- (?P<name>[a-z ]+?)(?:: (?P<value>.+?))? -->$")
MARKS = ("needs", "run by", "background", "continues", "file", "exit")
# A list or a box, of which indented lines are a part.
HOLDS_TEXT = re.compile(r"^ *([-*+]|\d+\.|!!!|\?\?\?\+?) ")


class NoBlock(Exception):
    """A block that cannot be told apart: the page, the line, and what to write."""


@dataclass(frozen=True)
class Block:
    """A block of a page.

    Attributes:
        page: In which it stands.
        line: Of its fence, counted from 1.
        language: One of LANGUAGES.
        text: Without its indentation.
        marks: What the comments in front of it say.
    """

    page: Path
    line: int
    language: str
    text: str
    marks: dict[str, str]

    @property
    def place(self) -> str:
        """Where it is, as an editor opens it."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def pages() -> list[Path]:
    """The README and every page of docs/ that people have written."""
    docs = ROOT / "docs"
    found = (
        path for path in sorted(docs.rglob("*.md")) if str(path.relative_to(docs)) not in WRITTEN
    )
    return [ROOT / "README.md", *found]


def blocks(page: Path) -> list[Block]:
    """The blocks of a page, in order.

    Raises:
        NoBlock: A block without fence or language, or a comment in front of one that says nothing
            known.
    """
    lines = page.read_text().splitlines()
    found: list[Block] = []
    number, inside_list = 0, False
    while number < len(lines):
        line = lines[number]
        if fence := FENCE.match(line):
            indent, end = fence["indent"], f"{fence['indent']}```"
            if end not in lines[number + 1 :]:
                raise NoBlock(f"{page}:{number + 1}: nothing ends this block")
            last = lines.index(end, number + 1)
            text = "".join(f"{each.removeprefix(indent)}\n" for each in lines[number + 1 : last])
            found.append(_block(page, number, fence["language"], text, lines))
            number = last
        elif line.strip():
            if HOLDS_TEXT.match(line):
                inside_list = True
            elif not line.startswith(" ") and not lines[number - 1].strip():
                inside_list = False
            if line.startswith("    ") and not lines[number - 1].strip() and not inside_list:
                raise NoBlock(
                    f"{page}:{number + 1}: an indented block: put it between ```LANGUAGE and ```"
                )
        number += 1
    return found


def _block(page: Path, number: int, language: str, text: str, lines: list[str]) -> Block:
    place = f"{page}:{number + 1}"
    if language not in LANGUAGES:
        raise NoBlock(
            f"{place}: {language or 'no language'}; write one of {', '.join(LANGUAGES)} behind ```"
        )
    marks: dict[str, str] = {}
    above = number - 1
    while above >= 0 and (mark := MARK.match(lines[above])):
        if mark["name"] not in MARKS:
            raise NoBlock(
                f"{page}:{above + 1}: {mark['name']!r} is no mark; write one of {', '.join(MARKS)}"
            )
        marks[mark["name"]] = mark["value"] or ""
        above -= 1
    unknown = [word for word in marks.get("needs", "").split() if word not in NEEDS]
    if unknown or marks.get("needs") == "":
        raise NoBlock(f"{place}: needs {unknown or 'nothing'}; write some of {', '.join(NEEDS)}")
    return Block(page, number + 1, language, text, marks)
