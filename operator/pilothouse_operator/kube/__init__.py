"""The Kubernetes API, as far as Pilothouse uses it. Nothing outside of this package imports a client library."""
