"""Writing: a report as files, each of them whole."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from loadgen.errors import BadInput
from loadgen.report import html
from loadgen.tuning.execute.findings import Findings
from loadgen.tuning.report import reproduce
from loadgen.tuning.report.layouts import document
from loadgen.tuning.report.story import Story
from loadgen.tuning.spec.workloads import loads
from loadgen.util.atomic_file import atomic_file, write_atomic
from loadgen.util.packages import require

CHARTS, SCRIPT = "charts", "reproduce.sh"


def write(findings: Findings, facts: Mapping[str, Any], folder_of_store: Path, into: Path) -> list[Path]:
    """Write a study's report; the same store gives the same bytes.

    Args:
        findings: What the study has found so far.
        facts: What its store knows beside.
        folder_of_store: Where the whole results lie.
        into: Folder of the report; it is made.

    Returns:
        STUDY.md with charts/*.png and STUDY.html, as far as the study wants them, and reproduce.sh.

    Raises:
        BadInput: A file cannot be written, or Matplotlib is not installed.
    """
    if into.exists() and not into.is_dir():
        raise BadInput("-o", f"{into} is no folder", "name one, or nothing: it is made where there is none")
    story = Story(findings, facts)
    figures = _drawn(story, folder_of_store)
    page, name = document(story, figures), _name(findings.study.name)
    report = findings.study.report
    texts: dict[Path, str] = {}
    pictures: dict[Path, bytes] = {}
    if "markdown" in report.formats:
        texts[into / f"{name}.md"] = html.markdown(page, CHARTS)
        pictures = {into / CHARTS / file: data for file, data in html.pictures(page).items()}
    if "html" in report.formats:
        texts[into / f"{name}.html"] = html.html(page)
    arms = {"baseline": story.baseline, "winner": story.winner}
    planned = {role: standing.found.planned for role, standing in arms.items() if standing is not None}
    if planned:
        settings = loads(findings.study)[story.workload]
        texts[into / SCRIPT] = reproduce.script(findings.study, settings, planned)
    try:
        for path in (*texts, *pictures):
            path.parent.mkdir(parents=True, exist_ok=True)
        for path, text in texts.items():
            write_atomic(path, text)
        for path, data in pictures.items():
            with atomic_file(path) as file:
                file.write(data)
    except OSError as error:
        problem = f"{error.filename or into} cannot be written ({error.strerror})"
        raise BadInput("-o", problem, "name another folder") from error
    return [*texts, *pictures]


def _drawn(story: Story, folder: Path) -> dict[str, html.Figure]:
    require("report", "drawing its charts", "matplotlib")
    from loadgen.tuning.report.study_charts import drawn

    return drawn(story, folder)


def _name(study: str) -> str:
    """A file's name: letters, digits and a few signs of the study's name, and no path."""
    return re.sub(r"[^\w.+-]+", "-", study).strip(".-") or "study"
