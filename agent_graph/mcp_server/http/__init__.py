"""The door over HTTP: who may come in, how much of it anybody gets, and what stands behind it."""
