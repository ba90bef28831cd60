"""``python -m kruskal`` is the command ``kruskal``."""

import sys

from kruskal.cli import main

if __name__ == "__main__":
    sys.exit(main())
