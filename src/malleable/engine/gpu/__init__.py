"""The simulator on a GPU: one replication per thread, event by event, exact.

Everything that runs on the device is a plain Python function until `kernels` compiles it, so that the
same functions run in numba's CUDA simulator, compiled for a processor, and on a GPU.
"""
