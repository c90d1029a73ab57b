"""What `loadgen doctor` finds out by trying it on this machine."""

import sys

from loadgen.cli.doctor import network


def test_this_system_stamps_what_arrives() -> None:
    assert network.kernel_stamps() is (sys.platform == "linux")
