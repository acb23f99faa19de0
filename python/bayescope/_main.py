"""The command `bayescope`: the program's own main, in this process."""

import signal
import sys


def main() -> int:
    """Runs the program with the arguments of this process; returns its exit code."""
    # Python's handler only notes the signal for Python code, and none runs meanwhile.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from . import _engine

    return _engine.main(["bayescope", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
