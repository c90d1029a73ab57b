"""Which tests a worker of pytest-xdist gets together: those of a file, which share servers, or
one that shares none.
"""

from xdist.scheduler import LoadFileScheduling

# Long tests that share no fixture: as one file, they would keep a worker busy for minutes after the
# others have ended.
ALONE = (
    "tests/slow/commands/test_dead_server.py",
    "tests/slow/commands/test_ends.py",
    "tests/slow/commands/test_search.py",
    "tests/slow/docs/test_pages.py",
    "tests/slow/gpustack/test_searches.py",  # whose servers start in a moment
)


class FileScheduling(LoadFileScheduling):
    """Gives whole files to workers, and each test of the files ALONE by itself."""

    def _split_scope(self, nodeid: str) -> str:
        return nodeid if nodeid.startswith(ALONE) else super()._split_scope(nodeid)
