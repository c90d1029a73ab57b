"""Reports: what a study has found, as Markdown, as one page of HTML, and as a script that does it once more."""

from loadgen.tuning.report.report_files import write

__all__ = ["write"]
