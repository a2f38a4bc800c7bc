"""Model hosts behind one protocol."""
