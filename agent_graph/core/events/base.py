"""What all facts share."""

from __future__ import annotations

from typing import ClassVar


class Fact:
    """What all facts share."""

    __slots__ = ()

    type: ClassVar[str] = ""
