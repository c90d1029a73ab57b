"""Shell: commands that a shell reads otherwise than they look."""

from collections.abc import Iterator

from loadgen.analysis.audit.finding import Finding
from loadgen.analysis.audit.study import PublishedStudy


def misread(study: PublishedStudy) -> Iterator[Finding]:
    """Every word of a command reaches it, as it is printed, and a serving script starts a server."""
    for flaw in study.page.flaws:
        said = " ".join(flaw.text.split())
        yield Finding(study.page.place(flaw.at), "shell", f"`{said}`", "", flaw.why)
