"""What is not collected for want of Triton, which only the kernels for CUDA need."""

from importlib.util import find_spec

NEEDS_TRITON = ["src/grokscope/kernels/*", "src/grokscope/*/kernel_*.py", "tests/jobs/count_memory.py"]
collect_ignore_glob = [] if find_spec("triton") else NEEDS_TRITON
