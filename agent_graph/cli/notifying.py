"""`notify`: try what tells of approvals and ends of runs."""

from __future__ import annotations

import typer

from agent_graph.cli.options import AsJson, DataDir, settings_of
from agent_graph.cli.output import DONE, finish, give, give_json
from agent_graph.core.jsonvalue import JsonObject

FAILED = 1


def register(app: typer.Typer) -> None:
    """Add the command of this file."""
    app.command("notify")(notify)


def notify(*, as_json: AsJson = False, data_dir: DataDir = "") -> None:
    """Send a notice of type `test` to the webhook and the command that the settings name; say what came of it."""

    async def work() -> int:
        from agent_graph.connect.targets import try_targets

        receipts = await try_targets(settings_of(data_dir).notify)
        found: JsonObject = {
            name: {"delivered": receipt.state == "delivered", "said": receipt.said}
            for name, receipt in receipts.items()
        }
        if as_json:
            give_json({"ok": True, "data": {"targets": found}})
        else:
            give("\n".join(f"{name}: {receipt.said or 'delivered'}" for name, receipt in receipts.items()))
        return DONE if all(receipt.state == "delivered" for receipt in receipts.values()) else FAILED

    finish(work(), as_json=as_json)
