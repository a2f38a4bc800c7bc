"""Keeps secrets out of the program's log, whoever writes to it: a library's words and a traceback too."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator

from agent_graph.core.redact import Redactor

_FORM = logging.Formatter()


class _Filter(logging.Filter):
    def __init__(self, redactor: Redactor) -> None:
        super().__init__()
        self._redactor = redactor

    def filter(self, record: logging.LogRecord) -> bool:
        said = record.getMessage()
        clean = self._redactor.text(said)
        if clean != said:
            record.msg, record.args = clean, ()
        if record.exc_info and not record.exc_text:
            record.exc_text = _FORM.formatException(record.exc_info)
        if record.exc_text:
            record.exc_text = self._redactor.text(record.exc_text)
        return True


@contextlib.contextmanager
def redacted_logs(redactor: Redactor) -> Iterator[None]:
    """Until the block ends, what the root logger's handlers write holds no secret."""
    handlers, added = [*logging.getLogger().handlers], _Filter(redactor)
    for handler in handlers:
        handler.addFilter(added)
    try:
        yield
    finally:
        for handler in handlers:
            handler.removeFilter(added)
