"""Compiled kernels for the CPU: each operation's C source, and the Python sibling that checks its arguments.

They are plain C, built with the package, and let go of the interpreter's lock while they run.
"""
