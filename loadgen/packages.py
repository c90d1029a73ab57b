"""Optional packages: which command installs what a flag needs and a default install does not have."""

import sys
from importlib.util import find_spec

from loadgen.errors import BadInput


def require(field: str, purpose: str, *packages: str, otherwise: str | None = None) -> None:
    """Check that optional packages are installed, before they are imported.

    Args:
        field: The flag or key that needs them.
        purpose: What needs them, as in "reading model.gguf".
        packages: Their names on the index, which are the names of their modules too.
        otherwise: What to do instead of installing them.

    Raises:
        BadInput: One is not installed.
    """
    missing = [name for name in packages if sys.modules.get(name) is None and find_spec(name) is None]
    if missing:
        remedy = f"pip install {' '.join(missing)}" + (f", or {otherwise}" if otherwise else "")
        noun = "package" if len(missing) == 1 else "packages"
        raise BadInput(field, f"{purpose} needs the {noun} {' and '.join(missing)}", remedy)
