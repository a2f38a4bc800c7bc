"""Modules that some systems have and others do not."""

from __future__ import annotations

import importlib
from typing import Any


def optional(name: str) -> Any:
    """The module of that name, None on a system that has none. Untyped: what it holds differs as well."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None
