"""Page: what a Markdown page consists of: sections, commands, tables, blocks and sentences.

Its stages are the sections in which it tries candidates; its summary is the table of what each of
them brought. It does not matter where lines end.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from loadgen.lab.audit.command import LAUNCHES, ServingCommand, serving_command
from loadgen.lab.audit.files import blocks
from loadgen.lab.audit.finding import Place
from loadgen.lab.audit.shell import Flaw, shell_commands
from loadgen.lab.audit.table import NO_TABLE, Row, Table, measured, tables
from loadgen.lab.audit.workload import ClientCommand, client_command, workloads

LONG = 300  # characters; a longer line is no place, and may hold headings
FENCE = re.compile(r"```(\w*)(.*?)```", re.DOTALL)
HEADING = re.compile(r" {0,3}(#{1,6}) +(\S[^\n]*)")
RUN_ON_HEADING = re.compile(
    r"(?:(?<=\s)|\A)(#{1,6}) (\S.*?)(?=\s(?:#{1,6} |- |\||[?!]{3}|```)|\Z)", re.DOTALL
)
# What stands above a serving script.
SERVING = re.compile(r"(?i)serving (?:script|command)[^\n]*\s+\Z")
SHELLS = ("", "bash", "sh", "shell", "console")
# Where the flags of a command are said to be none, in place of a fence.
NO_FLAGS = re.compile(r"(?i)\b(?:parameters|flags|arguments|options)\s*:\s*(N/A|none)\b")
_STEM = 5  # characters by which words are compared: backend and backends, cache and caching
_FILLERS = set(re.findall(r"\w+", "the in of and for with choosing enable selection option mode"))
_FILLERS |= {"options", "max", "num", "number", "numbers"}
_FILLERS |= {word for engine in LAUNCHES.values() for word in re.findall("[a-z]+", engine.lower())}


@dataclass(frozen=True, slots=True)
class Section:
    """A section with all that is below it; false for `NOWHERE`.

    Attributes:
        level: Of its heading, from 1.
        title: Its heading.
        begin, end: Where it begins and ends, in characters.
    """

    level: int
    title: str
    begin: int
    end: int

    def __contains__(self, at: int) -> bool:
        return self.begin <= at < self.end

    def __bool__(self) -> bool:
        return self.begin >= 0


NOWHERE = Section(0, "", -1, -1)  # contains nothing
Item = TypeVar("Item", ServingCommand, ClientCommand)


class Page:
    """A page, read.

    Attributes:
        name: The name of its file.
        text: All of it.
        prose: As long as the text, fences blanked out but for their marks.
        sections, tables, results, commands: What is in it, in its order; commands start engines,
            results are blocks.
        measured: The results that its tables print.
        clients: Its commands that send a load.
        workloads: The loads that it announces.
        flaws: What of its scripts bash reads otherwise than it looks.
    """

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = text
        self._starts = [0, *(commands.end() for commands in re.finditer("\n", text))]
        # as long as the text: a fence keeps its marks, length and lines, and nothing in it can be
        # taken for anything
        self.prose = FENCE.sub(
            lambda fence: "```" + re.sub(r"[^\n]", "\0", fence[0][3:-3]) + "```", text
        )
        self.sections = list(_sections(self.prose))
        self.tables = list(tables(self.prose))
        self.results = list(blocks(text, self.place))
        self.measured = [result for table in self.tables for result in measured(table, self.place)]
        lines = []
        for fence in FENCE.finditer(text):
            if fence[1] in SHELLS and "Successful requests" not in fence[2]:
                lines += [(line, fence) for line in shell_commands(fence[2], fence.start(2))]
        commands = [command for line, _ in lines if (command := serving_command(line))]
        commands += [
            ServingCommand("", "", {}, "", none.start(1)) for none in NO_FLAGS.finditer(self.prose)
        ]
        self.commands = sorted(commands, key=lambda command: command.at)
        self.clients = [client for line, _ in lines if (client := client_command(line))]
        self.flaws = [flaw for command in self.commands for flaw in command.flaws]
        for line, fence in lines:
            if not line.words and SERVING.search(self.prose[: fence.start()][-100:]):
                self.flaws.append(
                    Flaw(line.at, line.text, "the script sets variables and starts nothing")
                )
        titles = {section.begin: section.title for section in self.sections}
        self.workloads = list(workloads(text, self.prose, self.clients, titles))

    def place(self, at: int, name: str = "") -> Place:
        """The place of a character; on a long line by `name`, a block's, and its section."""
        line = bisect_right(self._starts, at)
        ends = self._starts[line] if line < len(self._starts) else len(self.text)
        if ends - self._starts[line - 1] <= LONG:
            row, column = self._cell(at, self._starts[line - 1], ends)
            return Place(self.name, line, "", row, column)
        return Place(self.name, line, ", ".join(filter(None, (name, self.section(at).title[:60]))))

    def _cell(self, at: int, begin: int, end: int) -> tuple[str, str]:
        """The row and column of a table for a character on a line; empty: the line is no row."""
        for table in self.tables:
            for row in table.rows:
                if begin <= row.at < end:
                    number = self.prose.count("|", row.at, at)
                    return row.name, table.columns[number - 1] if number else ""
        return "", ""

    def section(self, at: int, level: int = 6) -> Section:
        """The innermost section that a character is in, of no deeper level than this."""
        return next((s for s in reversed(self.sections) if at in s and s.level <= level), NOWHERE)

    def near(self, items: Sequence[Item], at: int) -> list[Item]:
        """The items before a character, under the innermost heading that has any."""
        before = [item for item in items if item.at < at]
        for section in [section for section in reversed(self.sections) if at in section]:
            if inside := [item for item in before if item.at in section]:
                return inside
        return before

    def titled(self, word: str) -> tuple[str, int] | None:
        """What the first section says whose title begins with a word, and where."""
        for section in self.sections:
            first, _, rest = section.title.partition(" ")
            if first.lower() == word.lower():
                begin = self.prose.index(section.title, section.begin) + len(section.title)
                below = self.prose[
                    begin : next((s.begin for s in self.sections if s.begin > section.begin), None)
                ]
                at = begin - len(rest) if rest else begin + len(below) - len(below.lstrip())
                return f"{rest} {below.strip()}".strip(), at
        return None


def _sections(prose: str) -> Iterator[Section]:
    headings: list[tuple[int, str, int]] = []
    at = 0
    for line in re.findall(r"[^\n]*\n|[^\n]+", prose):
        if len(line) > LONG:
            heads = RUN_ON_HEADING.finditer(line)
        else:
            heads = iter([match] if (match := HEADING.match(line)) else [])
        headings += [(len(head[1]), head[2].strip(" #\n"), at + head.start(1)) for head in heads]
        at += len(line)
    ends = [
        len(prose)
    ] * 7  # of a section of each level that begins where we are, from the last one backwards
    sections = []
    for level, title, begin in reversed(headings):
        sections.append(Section(level, title, begin, ends[level]))
        ends[level:] = [begin] * (7 - level)
    return reversed(sections)


def stems(title: str) -> set[str]:
    """The beginnings of the words of a title that tell what it is about."""
    words = re.findall(r"[a-z]{2,}", title.lower())
    return {word[:_STEM] for word in words if word not in _FILLERS}


def summary_and_stages(page: Page) -> tuple[Table, list[Section]]:
    """The table of what each stage brought, and the stages.

    The stages stand beside the summary and before it; or below such a section, if the rows of the
    summary are about those.

    Returns:
        NO_TABLE where the page has no summary; no stage where no section has a candidate's result.
    """
    heading = next(
        (section for section in page.sections if section.title.lower().startswith("summary")), None
    )
    if heading is None:
        return NO_TABLE, []
    table = next((table for table in page.tables if table.at in heading), NO_TABLE)
    parent = page.section(heading.begin, heading.level - 1)
    beside = [
        section
        for section in page.sections
        if section.level == heading.level and parent.begin < section.begin < heading.begin
    ]
    if not any(has_result(page, section) for section in beside):
        return table, []
    words = set().union(*(stems(row.name) for row in table.rows))
    stages: list[Section] = []
    for section in beside:
        below = [
            s
            for s in page.sections
            if s.level == section.level + 1 and section.begin < s.begin < section.end
        ]
        is_about_below = any(words & stems(part.title) for part in below)
        stages += below if is_about_below and not words & stems(section.title) else [section]
    return table, stages


def stages_of(row: Row, stages: Sequence[Section]) -> list[Section]:
    """The stages that a row of the summary is about, by the words of their titles."""
    words = stems(row.name)
    shared = {stage.begin: len(words & stems(stage.title)) for stage in stages}
    most = max(shared.values(), default=0)
    nearest = [stage for stage in stages if most and shared[stage.begin] == most]
    fewest = min((len(stems(stage.title)) for stage in nearest), default=0)
    is_exact = fewest == most or most > 1
    return [
        stage
        for stage in nearest
        if not is_exact or len(stems(stage.title)) == fewest or ":" in stage.title
    ]


def has_result(page: Page, section: Section) -> bool:
    """Whether a result stands in a section."""
    return any(result.at in section for result in page.results)
