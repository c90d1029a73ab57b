"""Mistakes that tools of this field have shipped: each has a test here, and none may come back
as ours.
"""

from tests.integration.faults.conftest import nothing_is_left, pytest_asyncio_loop_factories

__all__ = ["nothing_is_left", "pytest_asyncio_loop_factories"]
