"""The documents of a YAML or JSON text as plain values, read the same way whatever wrote them, and safely.

* `document`: what a document is, and the bounds that every one keeps
* `reader`: from bytes to documents
* `yaml_text`, `json_text`: the two forms; `scalars`: what a plain scalar is
"""
