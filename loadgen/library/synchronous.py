"""Synchronous forms of the library's coroutines, for programs in which no event loop runs."""

import asyncio
import contextlib
import functools
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

from loadgen.errors import BadInput

P = ParamSpec("P")
T = TypeVar("T")


def synchronous(function: Callable[P, Coroutine[Any, Any, T]], remedy: str = "await loadgen.{}(...)") -> Callable[P, T]:
    """Return the synchronous form of a function, which runs it in an event loop of its own, on uvloop.

    Its name is that of the function with `_sync`. It raises BadInput where an event loop runs already, and else what
    the function raises.

    Args:
        remedy: What to call where a loop runs; {} stands for the function's name.
    """
    name = f"{function.__name__}_sync"

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        with contextlib.suppress(RuntimeError):  # there is none
            asyncio.get_running_loop()
            raise BadInput(name, "an event loop runs here already", remedy.format(function.__name__))
        import uvloop

        return uvloop.run(function(*args, **kwargs))

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"Call `{function.__name__}` where no event loop runs; it makes one, on uvloop."
    return call
