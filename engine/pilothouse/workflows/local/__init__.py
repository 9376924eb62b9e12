"""Running without a cluster: command steps as processes of this machine, and the loop that drives a run."""
