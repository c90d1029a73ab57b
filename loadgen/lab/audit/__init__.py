"""Audit: what others published of their runs, and what of it cannot be true.

`at` is always how far into a page something begins, in characters; `text` is it as printed, on one
line.
"""

from loadgen.lab.audit.auditor import audit
from loadgen.lab.audit.finding import Finding, FindingGroup, Place, grouped

__all__ = ["Finding", "FindingGroup", "Place", "audit", "grouped"]
