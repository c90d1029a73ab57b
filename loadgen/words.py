"""Words: how numbers are named and written, the same wherever one reads them. What was not measured is n/a."""


def percentile(p: float) -> str:
    """The name of a percentile: 99.0 -> "p99", 99.9 -> "p99.9"."""
    return f"p{int(p) if p == int(p) else p}"


def to_ms(ns: float | None) -> float | None:
    """Nanoseconds in milliseconds."""
    return None if ns is None else ns / 1e6


def ms(ns: float | None) -> str:
    """Nanoseconds as milliseconds, with their unit: 1_500_000 -> "1.500 ms"."""
    return "n/a" if ns is None else f"{ns / 1e6:.3f} ms"


def percent(share: float | None, digits: int = 0) -> str:
    """A share of 1 as a percentage, with so many digits after the point: 0.125 -> "12%"."""
    return "n/a" if share is None else f"{share:.{digits}%}"
