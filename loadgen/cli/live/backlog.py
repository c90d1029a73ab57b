"""The backlog of a run that goes on: whether requests pile up, by the rule of the check of a whole run."""

from loadgen.checks.sufficiency import FIRST, MIN_BEGUN, MIN_SOJOURNS, Backlog
from loadgen.config.settings import RunSettings
from loadgen.metrics.progress import Progress

# The rule is asked four times a second, and a rise that chance made does not hold: it must, for a share of the window.
HELD_SHARE, MIN_HELD_S, MAX_HELD_S = 0.4, 5.0, 30.0


class LiveBacklog:
    """Requests that are due and have not ended, along a straight line through all moments so far.

    As in the check, the window begins when the first requests have had time to end, and ends with the last due one. A
    run whose rate rises, a closed loop, and sessions are not judged.

    Args:
        settings: The settings of the run.

    Attributes:
        overloaded: Whether requests come faster than they are answered, as far as the run shows.
    """

    def __init__(self, settings: RunSettings) -> None:
        self._changing, self._burstiness = settings.rate_changes, settings.burstiness
        self._first_due_s: float | None = None  # when the first requests were due
        self._sojourn_s = self._begin_s = 0.0
        # The sums of least squares over the moments of the window: their number, time, and requests.
        self._n = self._t = self._tt = self._y = self._ty = self._yy = 0.0
        self._rising_since_s: float | None = None
        self.overloaded = False

    def add(self, progress: Progress) -> None:
        """Add the latest progress; only what comes while requests are sent counts."""
        steady = not (self._changing or progress.closed_loop) and bool(progress.sending_s)
        if progress.phase != "running" or not steady or not self._window_has_begun(progress):
            return
        at_s, number = progress.elapsed_s - self._begin_s, float(progress.in_flight + progress.waiting)
        self._n, self._t, self._tt = self._n + 1, self._t + at_s, self._tt + at_s**2
        self._y, self._ty, self._yy = self._y + number, self._ty + at_s * number, self._yy + number**2
        rising = progress.due >= MIN_BEGUN and at_s >= MIN_SOJOURNS * self._sojourn_s and self._line(at_s).rising
        if not rising:
            self._rising_since_s = None
        elif self._rising_since_s is None:
            self._rising_since_s = at_s
        held_s = min(max(HELD_SHARE * at_s, MIN_HELD_S), MAX_HELD_S)
        self.overloaded = self._rising_since_s is not None and at_s - self._rising_since_s >= held_s

    def _window_has_begun(self, progress: Progress) -> bool:
        """Begin the window once the first requests have all ended and one of them has shown how long it took."""
        if self._sojourn_s:
            return True
        if self._first_due_s is None and progress.due >= FIRST:
            self._first_due_s = progress.elapsed_s
        first_s, e2el = self._first_due_s, progress.e2el
        if first_s is not None and e2el.mean_ms and progress.elapsed_s - progress.oldest_s > first_s:
            self._sojourn_s, self._begin_s = e2el.mean_ms / 1e3, progress.elapsed_s
        return False

    def _line(self, window_s: float) -> Backlog:
        mean_t, mean = self._t / self._n, self._y / self._n
        spread = self._tt / self._n - mean_t**2
        slope = (self._ty / self._n - mean_t * mean) / spread if spread > 0 else 0.0
        return Backlog.fitted(
            slope,
            mean,
            self._yy / self._n - mean**2,
            window_s=window_s,
            sojourn_s=self._sojourn_s,
            burstiness=self._burstiness,
        )
