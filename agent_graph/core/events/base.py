"""What all facts share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Fact:
    """What all facts share."""

    type: ClassVar[str] = ""
