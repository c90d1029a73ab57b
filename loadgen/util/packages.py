"""Optional packages: which command installs what a flag needs and a default install does not have."""

from importlib import import_module

from loadgen.errors import BadInput


def require(field: str, purpose: str, *packages: str, otherwise: str | None = None) -> None:
    """Import optional packages, so that one that is missing is a line with the command that installs it.

    Args:
        field: The flag or key that needs them.
        purpose: What needs them, as in "reading model.gguf".
        packages: Their names on the index, which are the names of their modules too.
        otherwise: What to do instead of installing them.

    Raises:
        BadInput: One cannot be imported.
    """
    errors: dict[str, ImportError] = {}
    for name in packages:
        try:
            import_module(name)
        except ImportError as error:
            errors[name] = error
    if errors:
        remedy = f"pip install {' '.join(errors)}" + (f", or {otherwise}" if otherwise else "")
        noun = "package" if len(errors) == 1 else "packages"
        problem = f"{purpose} needs the {noun} {' and '.join(errors)}"
        raise BadInput(field, problem, remedy) from next(iter(errors.values()))
