"""Audit: what others published of their runs, and what of it cannot be true."""

from loadgen.audit.auditor import audit
from loadgen.audit.finding import Finding, Place

__all__ = ["Finding", "Place", "audit"]
