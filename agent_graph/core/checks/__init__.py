"""What a graph as a whole shows: one module a question, one function an issue code."""
