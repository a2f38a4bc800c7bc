"""What the door over HTTP, and the check of who may do what, refuse with."""

from __future__ import annotations

from agent_graph.errors.base import Conflict, InvalidRequest, NotFound, Refused, Upstream


class AccessTokenInvalid(Refused):
    """The token is missing, unknown, revoked, expired, or made by or for another; nothing says which to a stranger."""

    http_status = 401


class LoginLinkInvalid(Refused):
    """The link to log in to the console was used already, is over, or was never given."""

    http_status = 401


class FormNotValid(Refused):
    """The form does not carry what the forms of this session in the console carry."""


class InsufficientScope(Refused):
    """The caller is known and lacks the scope for this; `details.scope` names it."""


class AddressNotAllowed(Refused):
    """Without authentication nothing is served but on the loopback address."""

    exit_code = 2


class HostNotAllowed(Refused):
    """The request names a host that this server is not set up to be called by."""

    http_status = 421


class OriginNotAllowed(Refused):
    """The request comes from a page of another server that may not call this one."""


class BodyTooLarge(InvalidRequest):
    """The request's body is larger than the limit."""

    http_status = 413


class TooManyRequests(Upstream):
    """The caller sends more requests than it may; `details.retry_after_s` says when to go on."""

    exit_code = 1
    http_status = 429


class IssuerUnreachable(Upstream):
    """The keys of the OAuth issuer cannot be read now, so that no token of it can be checked."""


class AddressInUse(Conflict):
    """Another program listens on that address, or the address is not this machine's."""

    exit_code = 5


class TokenNotFound(NotFound):
    """No token has that name or id."""
