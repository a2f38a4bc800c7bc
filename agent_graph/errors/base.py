"""The root of all errors, their six families, and how a step fails."""

from __future__ import annotations

import re
from typing import Any, ClassVar


class AgentGraphError(Exception):
    """A refusal with a stable code, a sentence the caller can act on and JSON details."""

    code: ClassVar[str] = "INTERNAL"
    retryable: ClassVar[bool] = False
    exit_code: ClassVar[int] = 1
    http_status: ClassVar[int] = 500

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "code" not in cls.__dict__:  # RunNotFound -> RUN_NOT_FOUND: the name is the code
            cls.code = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", cls.__name__).upper()

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.message, self.details = message, details


class InvalidRequest(AgentGraphError):
    """The request is wrong; the message says what to change."""

    code = "INVALID_ARGUMENT"
    http_status = 400


class NotFound(AgentGraphError):
    """Nothing is stored under that name."""

    code = "NOT_FOUND"
    http_status = 404


class Conflict(AgentGraphError):
    """The thing exists but is not in a state that allows this."""

    code = "CONFLICT"
    http_status = 409


class Refused(AgentGraphError):
    """Understood and not allowed."""

    code = "REFUSED"
    http_status = 403


class Upstream(AgentGraphError):
    """Busy, or something we depend on did not answer; trying again can help."""

    code = "UPSTREAM"
    retryable = True
    exit_code = 4
    http_status = 503


class Corrupt(AgentGraphError):
    """What is stored cannot be trusted, or this is a bug of ours."""

    code = "INTERNAL"
    exit_code = 5
    http_status = 500


class NodeFailure(Exception):
    """A node's step cannot go on; becomes a ``node_failed`` event, never a stack trace.

    `code` is a run error of the contract, `failure_class` one of the classes that decide on retry: timeout,
    unreachable, overloaded, server_error, bad_reply, not_found, refused, invalid, cancelled, bug.
    """

    def __init__(self, code: str, message: str, *, failure_class: str = "invalid", **details: Any) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.failure_class = failure_class
        self.details = details
