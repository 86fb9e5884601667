"""Speed and memory, measured; each module is a benchmark that `make bench` runs."""
