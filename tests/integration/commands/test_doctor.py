"""What `loadgen doctor` finds out by trying it on this machine."""

import sys

from loadgen.cli.doctor import arrival_times


def test_this_system_stamps_what_arrives() -> None:
    assert arrival_times.kernel_stamps() is (sys.platform == "linux")
