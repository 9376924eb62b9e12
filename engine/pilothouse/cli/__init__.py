"""The `pilothouse` command. It binds the parts of the engine that do not know of each other."""
