"""The texts in which compilers show what they made of a workload, and the user's lines in them.

A file imports nothing of its framework but inside of functions.
"""
