"""Parquet: a row for each request, with the values of the records."""

import orjson
import pytest

from loadgen.cli.main import dispatch
from loadgen.config.settings import RunSettings
from loadgen.metrics.records.file import RecordFile, RecordWriter
from loadgen.metrics.records.header import RunHeader
from loadgen.report import parquet
from tests.helpers.record_kinds import RECORDS
from tests.helpers.run_facts import START

pyarrow_parquet = pytest.importorskip("pyarrow.parquet")
HEADING = RunHeader(
    RunSettings(save_detailed=True, base_url=tuple(f"http://host{n}" for n in range(4))),
    "m",
    "20250102-030405",
    False,
    {"trace_key": "ab" * 16},
)


@pytest.fixture
def records(tmp_path):
    path = tmp_path / "records"
    with RecordWriter.optional(path) as writer:
        writer.begin(HEADING, START, len(RECORDS), ["a", "b"])
        for record in RECORDS:
            writer.write(record)
    return path


def known(line):
    return {name: value for name, value in line.items() if value is not None}


def test_rows_equal_the_records(records, tmp_path):
    assert parquet.write(str(records), str(tmp_path / "rows")) == len(RECORDS)
    table = pyarrow_parquet.read_table(tmp_path / "rows")
    rows = [known(row) for row in table.to_pylist()]
    for row in rows:
        for name in parquet.AS_JSON:
            if name in row:
                row[name] = orjson.loads(row[name])
    assert rows == [known(orjson.loads(line)) for line in RecordFile(records).lines()]
    kinds = {field.name: str(field.type) for field in table.schema}
    assert kinds["token_times"] == "list<element: int64>"
    assert (kinds["due"], kinds["outcome"], kinds["reused"]) == ("int64", "string", "bool")


def test_metadata_has_the_first_line_of_the_records(records, tmp_path):
    parquet.write(str(records), str(tmp_path / "rows"))
    metadata = pyarrow_parquet.read_metadata(tmp_path / "rows").metadata
    assert metadata[b"loadgen"] == records.read_bytes().splitlines()[0]


def test_command_says_how_many_rows_it_wrote(records, tmp_path, capsys):
    assert dispatch(["report", str(records), "--parquet", str(tmp_path / "rows")]) == 0
    assert capsys.readouterr().out == f"Saved: {tmp_path / 'rows'}, {len(RECORDS)} rows\n"


@pytest.mark.parametrize("flag", ["--parquet", "--otlp"])
def test_a_file_without_records_is_refused(tmp_path, capsys, flag):
    path = tmp_path / "result.json"
    path.write_text("{}\n")
    assert dispatch(["report", str(path), flag, "x"]) == 2
    assert f"{flag}: {path} has no records; name a file that" in capsys.readouterr().err


@pytest.mark.parametrize("flag", ["--parquet", "--otlp"])
def test_several_runs_are_refused(records, capsys, flag):
    assert dispatch(["report", str(records), str(records), flag, "x"]) == 2
    assert f"{flag}: takes the records of one run, and 2 are given" in capsys.readouterr().err
