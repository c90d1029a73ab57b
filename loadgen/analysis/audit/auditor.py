"""Audit of one file: read as what it is, and held to every rule."""

from itertools import chain
from pathlib import Path

from loadgen.analysis.audit.files import results
from loadgen.analysis.audit.finding import Finding
from loadgen.analysis.audit.page import Page
from loadgen.analysis.audit.published import Published
from loadgen.analysis.audit.rules import OF_PAGES, OF_RESULTS
from loadgen.analysis.audit.study import Study
from loadgen.errors import BadInput


def read(path: str) -> str:
    """The text of a file.

    Raises:
        BadInput: It cannot be read, or is no text.
    """
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise BadInput("FILE", f"{path}: {error.strerror}", "name a page or a result") from error
    except UnicodeDecodeError as error:
        raise BadInput("FILE", f"{path} is no text", "name a page or a result") from error


def audit_result(result: Published) -> list[Finding]:
    """What of one result cannot be true, or does not show what it seems to."""
    return list(chain.from_iterable(rule(result) for rule in OF_RESULTS))


def audit(path: str) -> list[Finding]:
    """What of a file cannot be true, or does not show what it seems to, in the order of the file.

    Args:
        path: A Markdown page or any text with console blocks, a result as JSON, or one as JSON in each line.

    Raises:
        BadInput: It cannot be read, or has no result and no table.
    """
    text = read(path)
    if text.lstrip()[:1] in ("{", "["):
        found = list(chain.from_iterable(map(audit_result, results(path, text))))
    else:
        page = Page(path, text)
        if not page.results and not page.tables:
            raise BadInput("FILE", f"{path} has no block of results and no table", "name a page or a result")
        study = Study(page)
        found = list(chain.from_iterable(map(audit_result, page.results)))
        found += chain.from_iterable(rule(study) for rule in OF_PAGES)
    return sorted(found, key=lambda finding: (finding.place.line, finding.note))
