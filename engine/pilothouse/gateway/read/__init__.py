"""The read API: what people may see of a namespace's runs and sessions and say to its agents, and its wire form."""
