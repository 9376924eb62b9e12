"""Benchmarks on a cluster: what a Pod step costs beside a bare Pod and beside Argo Workflows, on the same node."""
