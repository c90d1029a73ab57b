"""The report of a study: a page in Markdown and in HTML, and a script that repeats the
measurement.
"""

from loadgen.lab.study.report.report_files import write

__all__ = ["write"]
