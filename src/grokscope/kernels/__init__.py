"""Kernels for CUDA whose work for one run does not depend on the others.

A program belongs to one run and one tile, tiles have fixed sizes and sums a fixed order. Matrix products are cuBLAS's,
called so that their bits are those of a stack of two. Written in Triton, which comes with torch's CUDA builds;
without a device they run in Triton's interpreter, where the tests compare them with the reference.
"""

__all__: list[str] = []
