"""The imperative shell: performs effects and commits facts."""
