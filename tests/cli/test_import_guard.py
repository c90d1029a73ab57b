"""What holds while a command imports holds no longer for what it starts."""

import os

import pytest

from loadgen.cli.import_guard import single_threaded
from loadgen.util.machine import BLAS_THREADS


@pytest.mark.parametrize(("given", "meanwhile"), [(None, "1"), ("4", "4")])
def test_threads_of_linear_algebra_are_left_out_while_numpy_is_imported(
    monkeypatch: pytest.MonkeyPatch, given: str | None, meanwhile: str
) -> None:
    if given is None:
        monkeypatch.delenv(BLAS_THREADS, raising=False)
    else:
        monkeypatch.setenv(BLAS_THREADS, given)
    with single_threaded():
        assert os.environ[BLAS_THREADS] == meanwhile
    assert os.environ.get(BLAS_THREADS) == given
