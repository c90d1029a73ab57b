"""The command line: a thin layer over the library."""

import contextlib
import os
import signal
import sys
from types import FrameType
from typing import NoReturn

from loadgen.util import garbage_collection

IMPORT = "<frozen importlib._bootstrap>"  # the file of the functions that carry out an import
INTERRUPTED = 130  # as in `exit_codes`, which is not imported yet
KEY_VARIABLE = "OPENAI_API_KEY"  # as in `redaction`
KEY_FILE = "LOADGEN_KEY_FILE"  # a variable with the file descriptor from which the key is read


def command() -> None:
    """Run the command of this process; a Ctrl-C while it is imported ends the process at
    once.
    """
    _take_key_from_environment()
    if (
        signal.getsignal(signal.SIGINT) is signal.default_int_handler
    ):  # a command in the background ignores it
        signal.signal(signal.SIGINT, _interrupt)
    garbage_collection.collect_rarely()
    try:
        from loadgen.cli import main

        main.command()
    except KeyboardInterrupt:
        _end()


def _take_key_from_environment() -> None:
    """Start this program again without the API key, which it then reads from a file in memory, if
    it has one.

    The kernel shows other processes of the user the environment that a program was started with,
    also that of processes forked from it. It does not show a variable that is set later.
    """
    if sys.platform == "linux" and KEY_VARIABLE in os.environ:
        descriptor = os.memfd_create("key", 0)
        os.write(descriptor, os.environb.pop(KEY_VARIABLE.encode()))
        os.lseek(descriptor, 0, os.SEEK_SET)
        os.environ[KEY_FILE] = str(descriptor)
        os.execv(sys.executable, sys.orig_argv)
    if KEY_FILE in os.environ:
        with open(int(os.environ.pop(KEY_FILE)), "rb") as file:
            os.environb[KEY_VARIABLE.encode()] = file.read()


def _interrupt(number: int, frame: FrameType | None) -> None:
    """End the process if it is importing, else raise KeyboardInterrupt.

    During an import, a KeyboardInterrupt becomes another error, or crashes a compiled module.
    """
    while frame is not None:
        if frame.f_code.co_filename == IMPORT:
            _end()
        frame = frame.f_back
    raise KeyboardInterrupt


def _end() -> NoReturn:
    with contextlib.suppress(OSError):  # stderr is closed
        os.write(2, b"loadgen: interrupted\n")
    os._exit(INTERRUPTED)
