"""``python -m hookviz`` is the command line."""

from __future__ import annotations

import sys

from hookviz.cli import main

if __name__ == "__main__":
    sys.exit(main())
