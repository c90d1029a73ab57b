"""The import guard: numpy is imported with one BLAS thread, and the environment is restored."""

import os

import pytest

from loadgen.cli.import_guard import single_threaded
from loadgen.util.machine import BLAS_THREADS


@pytest.mark.parametrize(("given", "meanwhile"), [(None, "1"), ("4", "4")])
def test_numpy_import_is_single_threaded_unless_the_user_chose(
    monkeypatch: pytest.MonkeyPatch, given: str | None, meanwhile: str
) -> None:
    if given is None:
        monkeypatch.delenv(BLAS_THREADS, raising=False)
    else:
        monkeypatch.setenv(BLAS_THREADS, given)
    with single_threaded():
        assert os.environ[BLAS_THREADS] == meanwhile
    assert os.environ.get(BLAS_THREADS) == given
