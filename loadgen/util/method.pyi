"""Method: a method of a compiled object, which compiled code calls without Python."""

from typing import Any, final

@final
class Method:
    """A method with one argument, or none."""

    @property
    def __self__(self) -> object: ...
    def __call__(self, argument: Any = None) -> None: ...
