"""Reports: what a study has found, as Markdown, as one page of HTML, and as a script that does it once more."""

from loadgen.studies.reports.writing import write

__all__ = ["write"]
