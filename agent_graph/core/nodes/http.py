"""`http`: calls a path of a named connection; known to the checker, performed by nobody yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Annotated, Any, Final, Literal

from agent_graph.core.bounds import Len
from agent_graph.core.classes import dataclass
from agent_graph.core.issues import Issue, pointer
from agent_graph.core.limits import DEFAULTS, Limits
from agent_graph.core.nodes.base import UNAVAILABLE_EVERYWHERE, NodeConfig, Read, Target, path_issues, value_reads

SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
"""The methods that ask for nothing to change (RFC 9110, 9.2.1)."""
REPEATABLE: Final = SAFE | {"PUT", "DELETE"}
"""Those of which several do no more than one (RFC 9110, 9.2.2)."""
_SECRET: Final = frozenset({"authorization", "proxy-authorization", "cookie", "x-api-key"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(NodeConfig):
    """The fields of an `http` node."""

    connection: Annotated[str, Len(1, 64)]
    """A connection named in the server's configuration: a graph names no address and no secret."""
    method: Literal["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"] = "GET"
    path: str = "/"
    """Below the connection's address; a template."""
    query: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    body: Any = None
    """Texts in it are templates."""
    idempotent: bool = False
    """Making the call twice does no more than making it once."""


CHOOSES: Final = False
UNAVAILABLE: Final = UNAVAILABLE_EVERYWHERE


def check(node_id: str, config: Config, _limits: Limits = DEFAULTS) -> Sequence[Issue]:
    issues = path_issues(node_id, [(config.input_key, "/input_key"), (config.output_key, "/output_key")])
    if not config.path.startswith(("/", "{")) or config.path.startswith("//"):
        message = "`path` starts with one slash: the address is the connection's"
        issues.append(Issue("FIELD_INVALID", message, pointer="/path", node_id=node_id))
    issues += [
        Issue("FIELD_INVALID", f"`{name}` belongs to the connection: a graph holds no secrets",
              pointer=pointer("headers", name), node_id=node_id)
        for name in config.headers
        if name.lower() in _SECRET
    ]  # fmt: skip
    return issues


def targets(_config: Config) -> Sequence[Target]:
    return ()


def reads(config: Config) -> Sequence[Read]:
    found: list[Read] = []
    for name in ("path", "query", "headers", "body"):
        found += value_reads(getattr(config, name), f"/{name}", input_key=config.input_key)
    return found


def writes(_node_id: str, config: Config) -> Sequence[str]:
    return [config.output_key] if config.output_key else []


def writes_current(config: Config) -> bool:
    return not config.output_key


def acts(config: Config) -> bool:
    """It may change something outside."""
    return config.method not in SAFE


def repeatable(config: Config) -> bool:
    """The call may be made again."""
    return config.idempotent or config.method in REPEATABLE
