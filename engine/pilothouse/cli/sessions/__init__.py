"""Sessions as the command line shows, carries over and speaks to: the same of this machine and of a cluster."""
