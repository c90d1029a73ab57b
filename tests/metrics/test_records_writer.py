"""A file of records that cannot be written is refused; a disk that becomes full ends no run."""

import pytest

from loadgen.errors import BadInput
from loadgen.metrics.records.file import RecordWriter
from tests.helpers.run_facts import answered


def test_without_a_path_there_is_no_writer():
    with RecordWriter.optional(None) as writer:
        assert writer is None


@pytest.mark.parametrize("path", ["missing/records.jsonl", "."])
def test_a_file_that_cannot_be_written_is_refused(tmp_path, path):
    with pytest.raises(BadInput) as caught, RecordWriter.optional(str(tmp_path / path)):
        pass
    assert caught.value.field == "--records"
    assert str(tmp_path) in caught.value.problem


def test_full_disk_is_remembered_and_raises_no_error():
    with RecordWriter.optional("/dev/full") as writer:
        for index in range(2000):  # more than the buffer holds
            writer.write(answered(index))
        writer.close()
        assert writer.error == "No space left on device"
