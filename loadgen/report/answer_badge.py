"""Answer badge: the parts of an answer in one coloured line below the title of a page."""

from collections.abc import Iterable

from loadgen.document import Badge, NoteKind, Span, Tone, line
from loadgen.report.run_state import Colour
from loadgen.report.summary_line import Part

SEVERITY = (Colour.RED, Colour.YELLOW)  # the worst first
KINDS: dict[Colour, NoteKind] = {Colour.RED: "danger", Colour.YELLOW: "warning"}


def answer_badge(parts: Iterable[Part], *, simulated: bool, answer: Colour = Colour.NONE) -> Badge:
    """Make a badge of the parts: red for failures, amber for caveats, blue for the simulator, else
    green.

    Args:
        parts: One at least.
        simulated: Whether loadgen's own simulator was measured.
        answer: The colour of the answer itself, which is the title of the page.
    """
    (first, colour), *others = parts
    usual: NoteKind = "info" if simulated else "tip"
    text = line(Span(first, Tone.STRONG), *(f" \N{MIDDLE DOT} {other}" for other, _ in others))
    worst = min((colour, answer, *(other for _, other in others)), key=_rank)
    return Badge(KINDS.get(worst, usual), text)


def _rank(colour: Colour) -> int:
    return SEVERITY.index(colour) if colour in SEVERITY else len(SEVERITY)
