"""Command steps: the entry point that runs one, the frames it writes, and what they amount to."""
