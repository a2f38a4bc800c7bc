"""Why a client, its configuration and the daemon of its data folder do not come together."""

from __future__ import annotations

from agent_graph.errors.base import Conflict, InvalidRequest, Upstream


class DaemonVersionMismatch(Conflict):
    """A client and the daemon of its data folder are of different versions; stop the daemon, restart the client."""

    exit_code = 5


class DaemonSettingsDiffer(Conflict):
    """A client asks for a model or a host other than those the daemon of its data folder runs with."""

    exit_code = 2


class OwnerSettingsDiffer(Conflict):
    """An option names a model or a host other than those the process that owns the data folder runs with."""

    exit_code = 2


class DaemonUnreachable(Upstream):
    """The daemon of the data folder could not be started, or does not answer."""

    exit_code = 5


class DaemonLost(Upstream):
    """The daemon ended before it had answered; whether it did what was asked is unknown. Runs go on."""

    exit_code = 5


class ClientConfigInvalid(InvalidRequest):
    """A client's configuration file cannot be read, or not be changed without touching what is not ours."""
