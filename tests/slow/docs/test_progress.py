"""docs/library.md names every value that a program can read of a run; docs/live.md says how
exact they are.
"""

from msgspec import structs

from loadgen.core.sketch import MAX_ERROR
from loadgen.metrics.progress import Progress
from tests.helpers.source import ROOT


def test_the_page_names_every_attribute_of_a_progress() -> None:
    told = (
        (ROOT / "docs/library.md").read_text().partition("\n## Progress\n")[2].partition("\n## ")[0]
    )
    properties = [name for name, value in vars(Progress).items() if isinstance(value, property)]
    names = [*(field.name for field in structs.fields(Progress)), *properties]
    assert len(properties) >= 3
    assert [name for name in names if f"`{name}`" not in told] == []


def test_the_page_says_how_near_percentiles_are() -> None:
    of_the_histogram = 1 / 2048  # half a bucket
    assert (
        f"within {100 * (MAX_ERROR + of_the_histogram):.1f} %"
        in (ROOT / "docs/live.md").read_text()
    )
