"""A prototype of training by fused Triton kernels, measured against today's compiled step.

Each program belongs to one run and one tile, tiles have fixed sizes and sums a fixed order: what is computed for a run
depends neither on how many others there are nor on its slot. Not part of the package: on an H200 it is slower than the
compiled step (`benchmarks/results/fused-cuda.json`).
"""
