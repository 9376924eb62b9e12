"""Expressions of a workflow: CEL, found in text, checked, and evaluated in a worker process with limits.

* `template`: the `${{ }}` parts of a text or of a JSON tree
* `references`: what an expression reads
* `evaluator`: compiling and evaluating
* `errors`: the two ways in which an expression fails

This package imports nothing by itself, so that the worker process starts fast.
"""
