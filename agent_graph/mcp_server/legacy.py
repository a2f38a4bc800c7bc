"""The ancestor's two commands under their old names and flags, so that an existing client entry keeps working."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from agent_graph import __version__
from agent_graph.mcp_server.proxy_arguments import MEMORY, Arguments


def main(arguments: Sequence[str] | None = None) -> int:
    """`agent-graph-mcp`: the same as `agent-graph mcp`. Returns its exit code, 2 for wrong flags."""
    parser = _parser("agent-graph-mcp", "Serve the tools of agent-graph to an assistant over MCP on stdio.")
    parser.add_argument("--direct", action="store_true", help="own the data folder, without a daemon")
    given = parser.parse_args(arguments)
    asked = Arguments(_flags(given), socket=given.socket)
    if not given.direct and asked.folder != MEMORY:
        from agent_graph.mcp_server import proxy

        return proxy.serve(asked)
    from agent_graph.errors import SettingInvalid
    from agent_graph.mcp_server import serve
    from agent_graph.settings import load

    try:
        settings = load(asked.flags)
    except SettingInvalid as refusal:
        sys.stderr.write(f"agent-graph-mcp: {refusal.message}\n")
        return refusal.exit_code
    return serve.main(settings)


def daemon_main(arguments: Sequence[str] | None = None) -> int:
    """`agent-graph-mcpd`: the same as `agent-graph daemon`. Returns its exit code, 2 for wrong flags."""
    given = _parser("agent-graph-mcpd", "Own a data folder and serve any number of assistants.").parse_args(arguments)
    from agent_graph.mcp_server import daemon_process

    return daemon_process.start(_flags(given), detached=False, socket_path=given.socket)


def _flags(given: argparse.Namespace) -> dict[str, str]:
    return {"data_dir": given.data_dir, "model": given.model, "ollama_host": given.base_url}


def _parser(name: str, description: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=name, description=description)
    parser.add_argument("--base-url", default="", metavar="URL", help="where Ollama listens (now --ollama-host)")
    parser.add_argument("--model", default="", help="the model of every node that names none")
    parser.add_argument("--data-dir", default="", metavar="FOLDER", help="the data folder")
    parser.add_argument("--socket", default="", metavar="PATH", help="a second place where the daemon listens")
    parser.add_argument("--version", action="version", version=__version__)
    return parser


if __name__ == "__main__":
    sys.exit(main())
