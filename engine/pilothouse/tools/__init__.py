"""Tools of an agent: what a tool is, the registry that finds and checks them, the built-in ones, the sandbox."""
