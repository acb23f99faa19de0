"""The command `bayescope`: the program's own main, in this process."""

import signal
import sys


def main() -> int:
    """Runs the program with the arguments of this process; returns its exit code."""
    # Python's handler only notes the signal for Python code, and none runs meanwhile.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from . import _engine

    # What starts this again, in sessions of `serve` and scripts of `slurm`. A Python inside another program has no file of its own.
    start = (sys.executable, ["-m", "bayescope"]) if sys.executable else None
    return _engine.main(["bayescope", *sys.argv[1:]], start)


if __name__ == "__main__":
    sys.exit(main())
