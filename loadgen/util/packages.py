"""Optional packages: import them, or name the command that installs them."""

from importlib import import_module

from loadgen.errors import BadInput


def require(
    field: str,
    purpose: str,
    *packages: str,
    otherwise: str | None = None,
) -> None:
    """Import optional packages, or raise an error with the command that installs the missing ones.

    Args:
        field: The flag or key that needs them.
        purpose: The use that needs them, such as "reading model.gguf".
        packages: Their names, both on the package index and as modules.
        otherwise: An alternative to installing them.

    Raises:
        BadInput: A package cannot be imported.
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
