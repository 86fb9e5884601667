"""`python -m grokscope.trackers wandb DIR`: mirror the runs named on standard input until that ends."""

import sys

from grokscope.trackers.following import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
