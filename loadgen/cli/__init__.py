"""The command line: a skin over the library."""

import os
import signal
from types import FrameType

IMPORT = "<frozen importlib._bootstrap>"  # the file of the functions that carry out an import
INTERRUPTED = 130  # as in `exit_codes`, which is not imported yet


def command() -> None:
    """Run the command of this process; a Ctrl-C while it is imported ends the process without a word."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # a command in the background ignores it
        signal.signal(signal.SIGINT, _interrupt)
    try:
        from loadgen.cli import main

        main.command()
    except KeyboardInterrupt:
        os._exit(INTERRUPTED)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """End the process if it is importing, else raise KeyboardInterrupt.

    During an import, a KeyboardInterrupt becomes another error, or crashes a compiled module.
    """
    while frame is not None:
        if frame.f_code.co_filename == IMPORT:
            os._exit(INTERRUPTED)
        frame = frame.f_back
    raise KeyboardInterrupt
