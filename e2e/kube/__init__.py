"""The operator's client of the Kubernetes API, against a real server."""
