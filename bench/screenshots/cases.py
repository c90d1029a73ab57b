"""The cases that screenshots show, each a saved result, and what is rendered of them."""

import gzip
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from loadgen.config.settings import RunSettings
from loadgen.metrics.progress import Progress
from loadgen.report import from_dict, load
from loadgen.report.result import RunResult
from tests.helpers.command_line import loadgen
from tests.helpers.source import ROOT

PICTURES = ROOT / "docs" / "pictures"
RESULTS = PICTURES / "results"
DIGESTS = PICTURES / "digests.json"  # of what was rendered when the screenshots were taken
LIVE = ("good", "overloaded")


@dataclass(frozen=True, slots=True)
class Case:
    """One saved result.

    Attributes:
        name: In the names of files.
        words: The command that reports it, from the folder of the results.
        title: What the page about it calls it.
    """

    name: str
    words: tuple[str, ...]
    title: str


CASES = (
    Case("good", ("report", "good.json"), "A run that holds"),
    Case("overloaded", ("report", "overloaded.json"), "A run beyond what the server can do"),
    Case("dead", ("report", "dead.json"), "A run whose server died"),
    Case("search", ("report", "search.json"), "A search for the highest rate"),
    Case("comparison", ("compare", "base", "new"), "A comparison of three starts each"),
)


def console(case: Case) -> str:
    """Return what the command prints."""
    done = loadgen(*case.words, cwd=RESULTS)
    assert not done.stderr, done.stderr
    return done.stdout


def write_page(case: Case, path: Path) -> None:
    """Write the HTML page of the case."""
    done = loadgen(*case.words, "--html", str(path), cwd=RESULTS)
    assert path.exists(), done.stderr


def recording(name: str) -> Path:
    """Return the file with the progress of a run."""
    return RESULTS / f"{name}.progress.json.gz"


def progress_of(name: str) -> list[Progress]:
    """Read the recorded progress of a run."""
    return msgspec.json.decode(
        gzip.decompress(recording(name).read_bytes()), type=list[Progress], strict=False
    )


def settings_of(name: str) -> RunSettings:
    """Read the settings of the run of a case."""
    result = from_dict(load(str(RESULTS / f"{name}.json"))[0])
    assert isinstance(result, RunResult)
    return result.provenance.settings


def rendered(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the name of each rendered text, and its digest; the files of pages are written into
    a folder.
    """
    for case in CASES:
        page = folder / f"{case.name}.html"
        write_page(case, page)
        yield f"{case.name}.html", _digest(page.read_text())
        yield f"{case.name}.txt", _digest(console(case))


def digests(folder: Path) -> str:
    """Return the digests of all that is rendered, as JSON."""
    return json.dumps(dict(rendered(folder)), indent=1) + "\n"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
