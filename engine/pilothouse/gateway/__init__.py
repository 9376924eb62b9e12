"""The HTTP side of an installation: the store API for Pods and the read API for people."""
