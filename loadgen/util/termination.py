"""Termination: SIGTERM and SIGHUP as a Ctrl-C, for commands that have processes to end."""

import signal


def interrupt_on_termination() -> None:
    """Let SIGTERM and SIGHUP do what Ctrl-C does: `with` blocks end the processes they started.

    Signals that are ignored stay so: under nohup a command outlives the terminal.
    """
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
        # With Python's own handler, asyncio cancels what runs. An exception that is raised in a
        # callback may be lost.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda *_: signal.raise_signal(signal.SIGINT))
