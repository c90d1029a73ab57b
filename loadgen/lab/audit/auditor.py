"""Audit of files: each is held to every rule, and all are held against each other."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from loadgen.errors import BadInput
from loadgen.lab.audit.files import results
from loadgen.lab.audit.finding import Finding, Findings
from loadgen.lab.audit.page import Page
from loadgen.lab.audit.published import Published
from loadgen.lab.audit.rules import OF_RESULTS, rules_for
from loadgen.lab.audit.study import PublishedStudy


@dataclass(frozen=True, slots=True)
class AuditedFile:
    """A file that was read.

    Attributes:
        path: As it was named.
        results: Its results.
        findings: What of it cannot be true by itself, or does not show what it seems to.
    """

    path: str
    results: Sequence[Published]
    findings: Sequence[Finding]


def read(path: str) -> str:
    """The text of a file.

    Raises:
        BadInput: It cannot be read, or is no text.
    """
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise BadInput((), f"{path}: {error.strerror}", "name a page or a result") from error
    except UnicodeDecodeError as error:
        raise BadInput((), f"{path} is not a text file", "name a page or a result") from error


def audit_result(result: Published) -> list[Finding]:
    """What of one result cannot be true, or does not show what it seems to."""
    return list(chain.from_iterable(rule(result) for rule in OF_RESULTS))


def audit_file(path: str) -> AuditedFile:
    """Audit one file.

    Args:
        path: A Markdown page or any text with console blocks, a result as JSON, or one as JSON in
            each line.

    Raises:
        BadInput: It cannot be read, or has nothing that can be checked.
    """
    text = read(path)
    if text.lstrip()[:1] in ("{", "["):
        published = results(path, text)
        return AuditedFile(path, published, list(chain.from_iterable(map(audit_result, published))))
    page = Page(path, text)
    if not (page.results or page.measured or any(table.changes for table in page.tables)):
        raise BadInput(
            (),
            f"{path}: nothing here that I can check: no block of results, and no table of "
            "numbers that I know",
            "name a page or a result that has one",
        )
    study = PublishedStudy(page)
    inconsistencies = [
        *chain.from_iterable(map(audit_result, [*page.results, *page.measured])),
        *chain(*(rule(study) for rule in rules_for(study))),
    ]
    return AuditedFile(path, page.results, inconsistencies)


def findings(files: Sequence[AuditedFile]) -> list[Finding]:
    """What of files cannot be true, or does not show what it seems to."""
    of_files = chain.from_iterable(file.findings for file in files)
    return [*of_files, *copies({file.path: file.results for file in files})]


def copies(files: Mapping[str, Sequence[Published]]) -> Findings:
    """No two files have one and the same run; a file that was given twice is one.

    Args:
        files: The results of each file, by its name.
    """
    for (first, earlier_results), (_, later_results) in itertools.combinations(files.items(), 2):
        for result in later_results:
            original = next(
                (earlier for earlier in earlier_results if earlier.same_run(result)), None
            )
            if original is not None:
                total = result.get("total_per_s") or result.get("output_per_s")
                where = f"{first}:{original.place.line}"
                why = (
                    f"every number is that of {where}, digit by digit: one of the two was not "
                    "measured"
                )
                says = f"{result.title or 'result'}: total {total} tok/s"
                yield Finding(result.place, "copied", says, "", why, cause=first)


def audit(*paths: str) -> list[Finding]:
    """What of files cannot be true, or does not show what it seems to, in the order of the files
    and their lines.

    Raises:
        BadInput: One of them cannot be read, or has nothing that can be checked.
    """
    inconsistencies = findings([audit_file(path) for path in paths])
    return sorted(
        inconsistencies,
        key=lambda finding: (paths.index(finding.place.file), finding.place.line, finding.note),
    )
