"""Optional packages: import them, or name the command that installs them."""

from importlib import import_module

from loadgen.errors import BadInput


def require(
    field: str,  # the flag or key that needs them
    purpose: str,  # the use that needs them, such as "reading model.gguf"
    *packages: str,
    otherwise: str | None = None,  # an alternative to installing them
) -> None:
    """Import optional packages, or raise an error with the command that installs the missing ones.

    Args:
        packages: Their names, both on the package index and as modules.
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
