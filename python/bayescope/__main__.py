"""`python -m bayescope`: the command line."""

import sys

from ._main import main

sys.exit(main())
