"""What is recorded of a run: rows, events, failures and values. Plain data that every other part speaks."""
