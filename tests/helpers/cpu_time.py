"""`python -m tests.helpers.cpu_time COMMAND...`: run a command, and print the CPU time of all
its processes.
"""

import resource
import subprocess
import sys


def main() -> int:
    """Run the command; returns its exit code."""
    code = subprocess.run(sys.argv[1:], check=False).returncode
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    total_s = usage.ru_utime + usage.ru_stime
    print(f"CPU time: {total_s:.0f} s ({usage.ru_utime:.0f} user, {usage.ru_stime:.0f} system)")
    return code


if __name__ == "__main__":
    sys.exit(main())
