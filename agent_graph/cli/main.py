"""The command `agent-graph`: hands its arguments to typer, and answers `--version` before anything is imported."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from agent_graph import __version__

if TYPE_CHECKING:
    import typer

BUG = 5
KEYLESS = "--no-integrity-key"
KEYLESS_HELP = "Begin a data folder without a key: nothing in it is sealed, ever. Given before the command."
PRINTERS = (__name__, "click", "typer")


def main() -> int:
    """Run the command line of this process; it ends by SystemExit with the exit code, or returns it."""
    sys.excepthook = _bug
    if sys.argv[1:2] == [KEYLESS]:  # for whatever this process does or starts
        os.environ["AGENT_GRAPH_INTEGRITY_KEY"] = "off"
        del sys.argv[1]
    if sys.argv[1:] == ["--version"]:
        print(f"agent-graph {__version__}", flush=True)
        return 0
    if sys.argv[1:2] == ["mcp"] and (code := _front()) is not None:
        return code
    if sys.argv[1:3] == ["daemon", "--detached"]:
        return _daemon()
    from typer.main import get_command

    command = get_command(commands())
    if "--json" in sys.argv:
        return _in_json(command)
    command.main(sys.argv[1:], prog_name="agent-graph")
    return 0


def _front() -> int | None:
    """An assistant's client waits for it: nothing else is imported, unless the arguments want it."""
    from agent_graph.mcp_server.proxy import main as front

    return front(sys.argv[2:])


def _daemon() -> int:
    """As a front starts it; the rest of the command line takes a fifth of a second to import."""
    from agent_graph.mcp_server.daemon_process import start
    from agent_graph.mcp_server.proxy_arguments import given

    flags, socket_path = given(sys.argv[3:])
    return start(flags, detached=True, socket_path=socket_path)


def _in_json(command: Any) -> int:
    """Wrong usage is an envelope too, where one was asked for."""
    import typer

    from agent_graph.cli.output import give_json

    refused: Any = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")
    try:
        code: int | None = command.main(sys.argv[1:], prog_name="agent-graph", standalone_mode=False)
    except refused as wrong:
        said: Any = wrong
        give_json({"ok": False, "error_code": "INVALID_ARGUMENT", "error": said.format_message(), "retryable": False})
        return int(said.exit_code)
    return code or 0


def commands() -> typer.Typer:
    """Every command, in the order in which `--help` shows them."""
    import typer

    from agent_graph.cli import (
        approvals,
        approvers,
        checking,
        event_log,
        forking,
        graphs,
        install,
        keeping,
        keys,
        notifying,
        receipts,
        replaying,
        reporting,
        running,
        runs,
        serving,
        templates,
        tokens,
        witnesses,
    )

    app = typer.Typer(
        help="Councils, reviews and other multi-step LLM work as one JSON graph.",
        epilog="Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 3 waiting for a decision, 4 no model in reach, "
        "5 the store, 130 stopped by Ctrl-C.",
        no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )  # fmt: skip
    groups = (
        running, checking, templates, graphs, runs, event_log, receipts, forking, replaying, reporting, witnesses,
        approvals, approvers, keys, keeping, notifying, serving, tokens, install,
    )  # fmt: skip
    for group in groups:
        group.register(app)

    def options(*, keyless: bool = typer.Option(False, KEYLESS, help=KEYLESS_HELP)) -> None:
        """Councils, reviews and other multi-step LLM work as one JSON graph, on your own machine."""

    app.callback()(options)
    return app


def _bug(kind: type[BaseException], error: BaseException, trace: object) -> None:
    """A bug of ours in one line; its trace is for whoever sets AGENT_GRAPH_LOG=debug."""
    import traceback

    if isinstance(error, OSError) and _printing(error):  # the help and the version are printed by others
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        print(f"INVALID_ARGUMENT: standard output cannot be written: {error.strerror}", file=sys.stderr)
        raise SystemExit(1)
    if os.environ.get("AGENT_GRAPH_LOG", "").lower() == "debug":
        traceback.print_exception(kind, error, error.__traceback__)
    print(f"INTERNAL: a bug of ours ({kind.__name__}: {error}); AGENT_GRAPH_LOG=debug shows where", file=sys.stderr)
    raise SystemExit(BUG)


def _printing(error: BaseException) -> bool:
    """Whether it came of writing the help or the version, which no command of ours does."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and str(trace.tb_frame.f_globals.get("__name__")).startswith(PRINTERS)
