"""One module per node type; its name is the type's name in a spec."""
