"""What is not collected for want of Triton, which only the kernels for CUDA need."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("triton") else ["src/grokscope/kernels/*", "src/grokscope/*/kernel_*.py"]
