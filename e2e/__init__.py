"""Tests on a real cluster, named by behaviour. `make e2e` makes the cluster and the image, and runs them."""
