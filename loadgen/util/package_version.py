"""The version of an installed package, by the name of its metadata folder: to read the metadata takes far longer."""

import os
import sys
from functools import cache

SUFFIX = ".dist-info"


@cache
def package_version(package: str) -> str | None:
    """Return the version of an installed package; None if it is not installed.

    Args:
        package: Its name, as its metadata folder spells it: with _ for -.
    """
    for folder in filter(os.path.isdir, sys.path):
        for name in os.listdir(folder):
            found, _, version = name.removesuffix(SUFFIX).partition("-")
            if name.endswith(SUFFIX) and found.lower() == package:
                return version
    return None
