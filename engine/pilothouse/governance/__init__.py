"""The gates between a model and what its tools can reach. So far: which network destinations a tool may speak to."""
