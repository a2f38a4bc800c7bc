"""Tables of operations, one function per entry."""
