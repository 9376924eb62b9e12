"""The read API: what people may see of the runs of a namespace, and the client's half of its wire form."""
