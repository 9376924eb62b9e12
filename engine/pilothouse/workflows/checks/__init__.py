"""What is wrong with an object whose fields are valid one by one: `check.check`, and the tables and rules behind it."""
