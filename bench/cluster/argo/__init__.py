"""Argo Workflows on the cluster, beside us: its own programs and manifests, compiled from its Go module."""

VERSION = "v4.0.5"
