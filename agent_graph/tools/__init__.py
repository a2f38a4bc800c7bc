"""The registry of tools every door serves."""
