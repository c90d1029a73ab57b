"""The compiled scanner of a dialect."""

from loadgen.core.dialect import Dialect

class DialectScanner:
    """Reads the events of a dialect."""

    dialect: Dialect

    def __init__(self, dialect: Dialect) -> None: ...
