"""The store: two ports, and what implements them."""
