"""`python -m grokscope.jobs.trackers wandb DIR`: mirror the runs named on standard input until that ends."""

import sys

from grokscope.jobs.trackers.following import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
