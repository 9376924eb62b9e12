"""The built-in `apply_patch`: reading patches of two formats, applying them to texts, and the tool."""
