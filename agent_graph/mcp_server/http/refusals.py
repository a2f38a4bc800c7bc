"""A refusal as an HTTP response: the status of its family, the envelope of the tools, and what a client is to do."""

from __future__ import annotations

from starlette.responses import Response

from agent_graph.core.jsonvalue import compact
from agent_graph.errors import AccessTokenInvalid, AgentGraphError, InsufficientScope
from agent_graph.settings.http import HttpSettings
from agent_graph.tools.registry import failure

WELL_KNOWN = "/.well-known/oauth-protected-resource"


def response(refusal: AgentGraphError, http: HttpSettings) -> Response:
    """The response; a token that is missing or does not do also says where one is to be had."""
    envelope = failure(refusal)
    headers: dict[str, str] = {}
    if isinstance(refusal, AccessTokenInvalid):
        envelope.pop("details", None)
        headers["WWW-Authenticate"] = _challenge(http, "invalid_token" if refusal.details.get("shown") else "")
    elif isinstance(refusal, InsufficientScope):
        headers["WWW-Authenticate"] = _challenge(http, "insufficient_scope", scope=str(refusal.details["scope"]))
    if "retry_after_s" in refusal.details:
        headers["Retry-After"] = str(refusal.details["retry_after_s"])
    body = compact({"error_code": refusal.code, **envelope})
    return Response(body, refusal.http_status, headers=headers, media_type="application/json")


def metadata_url(http: HttpSettings) -> str:
    """Where the metadata of the protected resource is (RFC 9728): before the path of the resource itself."""
    from urllib.parse import urlsplit

    parts = urlsplit(http.oauth_resource)
    return f"{parts.scheme}://{parts.netloc}{WELL_KNOWN}{parts.path.rstrip('/')}"


def _challenge(http: HttpSettings, error: str, *, scope: str = "") -> str:
    said = ['realm="agent-graph"']
    said += [f'error="{error}"'] if error else []
    said += [f'scope="{scope}"'] if scope else []
    said += [f'resource_metadata="{metadata_url(http)}"'] if http.oauth_issuer else []
    return f"Bearer {', '.join(said)}"
