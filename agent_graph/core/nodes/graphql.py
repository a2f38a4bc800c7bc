"""`graphql`: sends a document to a named connection; known to the checker, performed by nobody yet."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import field
from typing import Annotated, Any, Final, Literal

from agent_graph.core.bounds import Len
from agent_graph.core.classes import dataclass
from agent_graph.core.issues import Issue, pointer
from agent_graph.core.limits import DEFAULTS, Limits
from agent_graph.core.nodes.base import UNAVAILABLE_EVERYWHERE, NodeConfig, Read, Target, path_issues, value_reads

_MUTATION: Final = re.compile(r"(?:^|\})\s*mutation\b|^\s*mutation\b", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(NodeConfig):
    """The fields of a `graphql` node."""

    connection: Annotated[str, Len(1, 64)]
    """A connection named in the server's configuration."""
    document: Annotated[str, Len(1)]
    """Sent as it is; what changes from run to run is in `variables`."""
    variables: dict[str, Any] = field(default_factory=dict)
    """Texts in it are templates."""
    on_errors: Literal["fail", "partial"] | Annotated[dict[Literal["goto"], list[str]], Len(1)] = "fail"
    """What an answer with `errors` leads to."""
    idempotent: bool = False
    """Making the call twice does no more than making it once."""


CHOOSES: Final = False
UNAVAILABLE: Final = UNAVAILABLE_EVERYWHERE


def check(node_id: str, config: Config, _limits: Limits = DEFAULTS) -> Sequence[Issue]:
    return path_issues(node_id, [(config.input_key, "/input_key"), (config.output_key, "/output_key")])


def targets(config: Config) -> Sequence[Target]:
    goto = config.on_errors["goto"] if isinstance(config.on_errors, dict) else []
    return [Target(name, pointer("on_errors", "goto", place)) for place, name in enumerate(goto)]


def reads(config: Config) -> Sequence[Read]:
    return value_reads(config.variables, "/variables", input_key=config.input_key)


def writes(_node_id: str, config: Config) -> Sequence[str]:
    return [config.output_key] if config.output_key else []


def writes_current(config: Config) -> bool:
    return not config.output_key


def acts(config: Config) -> bool:
    """It may change something outside."""
    return _MUTATION.search(config.document) is not None


def repeatable(config: Config) -> bool:
    """The call may be made again."""
    return config.idempotent or not acts(config)
