"""While a run at a level goes on: when it is clear that it cannot meet what is demanded."""

from pathlib import Path

from loadgen.demands import of_each
from loadgen.levels import Watch
from loadgen.measurement import Progress
from loadgen.records import RecordWriter
from loadgen.schedule import Schedule
from loadgen.settings import RunSettings
from tests.unit import making


class TestWatch:
    SETTINGS = RunSettings(num_prompts=1000)

    def lines(self, path: Path, slow: int, quick: int = 0) -> list[bytes]:
        """A file of records as they ended, the slow ones first and far from each other, cut into lines."""
        late = [making.steady(25 * number, ttft=600) for number in range(slow)]
        records = late + [making.steady(1 + index, ttft=20) for index in range(quick)]
        schedule = Schedule.burst(1000)
        with RecordWriter.optional(path) as writer:
            assert writer is not None
            writer.begin(making.heading(self.SETTINGS, schedule), making.START, 1000, [])
            for record in records:
                writer.write(record)
        return path.read_bytes().splitlines(keepends=True)

    def watch(self, path: Path) -> Watch:
        return Watch(path, of_each("ttft_p99<500ms,e2el_mean<1s"), self.SETTINGS)

    def test_it_may_go_on_as_long_as_the_others_could_make_up_for_it(self, tmp_path: Path) -> None:
        """Of 1,000 requests 10 may be late. If 15 are, Wilson's bound is 0.9901; if 16 are, it is 0.9893."""
        path = tmp_path / "records.jsonl"
        lines = self.lines(path, slow=40)
        watch, needed = self.watch(path), 0
        for count in range(1, len(lines) + 1):
            path.write_bytes(b"".join(lines[:count]))
            if watch(Progress("running", in_flight=1)) is not None:
                needed = count - 1
                break
        assert needed == 16
        assert watch.reason == "16 of 1000 requests have missed ttft_p99<500ms, which 99.0% of them must meet"

    def test_requests_that_are_good_never_stop_it(self, tmp_path: Path) -> None:
        path = tmp_path / "records.jsonl"
        self.lines(path, slow=5, quick=900)
        assert self.watch(path)(Progress("running")) is None

    def test_a_line_counts_once_and_when_it_is_whole(self, tmp_path: Path) -> None:
        path = tmp_path / "records.jsonl"
        lines = self.lines(path, slow=30)
        whole = b"".join(lines[:16])  # the first says what the run is
        watch = self.watch(path)
        for ending in (b"", lines[16][:50], lines[16][:-1]):
            path.write_bytes(whole + ending)
            for _ in range(3):
                assert watch(Progress("running", in_flight=1)) is None
        path.write_bytes(whole + lines[16])
        assert watch(Progress("running", in_flight=1)) is not None

    def test_before_there_are_records_there_is_nothing_to_say(self, tmp_path: Path) -> None:
        assert self.watch(tmp_path / "none.jsonl")(Progress("preparing")) is None
