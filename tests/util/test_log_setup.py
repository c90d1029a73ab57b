"""Logs go to what is stderr at that moment, a safe line each."""

import logging
import sys

import pytest

from loadgen.util.log_setup import ToStderr


def test_a_log_goes_to_what_is_stderr_when_it_is_written(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    handler = ToStderr()
    handler.setFormatter(logging.Formatter("%(levelname)s: %(message)s"))
    monkeypatch.setattr(sys, "stderr", sys.stdout)  # as a view does that puts lines above itself
    handler.emit(logging.LogRecord("loadgen", logging.WARNING, "", 0, "said \x1b[2J%s", ("twice",), None))
    assert capsys.readouterr() == ("WARNING: said \\x1b[2Jtwice\n", "")
