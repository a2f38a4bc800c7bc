"""Councils, reviews and other multi-step LLM work as one JSON graph; importing this imports next to nothing."""

__version__ = "0.1.0"
