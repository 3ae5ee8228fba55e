"""Compiled kernels of the CPU engine: a C source per operation, and a Python sibling that checks its arguments.

They are plain C, built with the package, and release the interpreter's lock while they run.
"""
