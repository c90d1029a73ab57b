"""Writes a report as files."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from loadgen.document import page_writer
from loadgen.errors import BadInput, setting
from loadgen.lab.study.execute.findings import Findings
from loadgen.lab.study.report.charts import drawings
from loadgen.lab.study.report.page import document
from loadgen.lab.study.report.report_model import ReportModel
from loadgen.lab.study.report.reproduce import script
from loadgen.lab.study.spec.workloads import loads
from loadgen.util.files import write_atomic

CHARTS = "charts"
SCRIPT = "reproduce.sh"
STUDY = "study.yaml"


def write(findings: Findings, facts: Mapping[str, Any], store: Path, into: Path) -> list[Path]:
    """Write a study's report; the same store gives the same bytes.

    Args:
        findings: Findings so far.
        facts: Facts of the study's store.
        store: Folder of the store, which has the whole results.
        into: Folder of the report, created if there is none.

    Returns:
        STUDY.md with charts/*.svg and STUDY.html, as far as the study wants them, study.yaml and
        reproduce.sh.

    Raises:
        BadInput: A file cannot be written.
    """
    if into.exists() and not into.is_dir():
        raise BadInput(
            setting.output,
            f"{into} is not a folder",
            "name a folder, or a path that does not exist",
        )
    model = ReportModel(findings, facts)
    page = document(model, drawings(model, store))
    name = re.sub(r"[^\w.+-]+", "-", findings.study.name).strip(".-") or "study"  # no path
    formats = findings.study.report.formats
    texts: dict[Path, str] = {}
    if "markdown" in formats:
        texts[into / f"{name}.md"] = page_writer.markdown(page, CHARTS)
        texts |= {into / CHARTS / file: svg for file, svg in page_writer.chart_files(page).items()}
    if "html" in formats:
        texts[into / f"{name}.html"] = page_writer.html(page)
    if text := facts.get("text"):
        texts[into / STUDY] = str(text)
    arms = {"baseline": model.baseline, "winner": model.winner}
    planned = {role: arm.planned for role, arm in arms.items() if arm is not None}
    if planned:
        texts[into / SCRIPT] = script(
            findings.study, loads(findings.study)[model.workload], planned
        )
    try:
        for path, text in texts.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(path, text)
    except OSError as error:
        problem = f"{error.filename or into} cannot be written ({error.strerror})"
        raise BadInput(setting.output, problem, "name another folder") from error
    return list(texts)
