"""The ancestor's two commands under their old names and flags, so that an existing client entry keeps working."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from agent_graph import __version__
from agent_graph.errors import SettingInvalid
from agent_graph.settings import load

NO_DAEMON = "agent-graph-mcpd: the shared daemon is not there yet; start `agent-graph mcp` in its place."


def main(arguments: Sequence[str] | None = None) -> int:
    """`agent-graph-mcp`: the same server as `agent-graph mcp`. Returns its exit code, 2 for wrong flags."""
    given = _parser().parse_args(arguments)
    flags = {"data_dir": given.data_dir, "model": given.model, "ollama_host": given.base_url}
    try:
        settings = load(flags)
    except SettingInvalid as refusal:
        sys.stderr.write(f"agent-graph-mcp: {refusal.message}\n")
        return refusal.exit_code
    from agent_graph.mcp_server import serve

    return serve.main(settings, in_process=True)


def daemon_main(arguments: Sequence[str] | None = None) -> int:
    """`agent-graph-mcpd`: says that there is no daemon yet. Returns 2."""
    sys.stderr.write(f"{NO_DAEMON}\n")
    return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="agent-graph-mcp", description="Serve the tools of agent-graph to an assistant over MCP on stdio."
    )
    parser.add_argument("--base-url", default="", metavar="URL", help="where Ollama listens (now --ollama-host)")
    parser.add_argument("--model", default="", help="the model of every node that names none")
    parser.add_argument("--data-dir", default="", metavar="FOLDER", help="the data folder")
    parser.add_argument("--socket", default="", metavar="PATH", help="accepted; the socket is in the data folder")
    parser.add_argument("--direct", action="store_true", help="accepted; this process always serves by itself")
    parser.add_argument("--version", action="version", version=__version__)
    return parser


if __name__ == "__main__":
    sys.exit(main())
