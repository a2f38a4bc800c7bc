"""`receipt` and `verify`: take what proves a run out of the data folder, and check it anywhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from agent_graph.cli.desk import Desk
from agent_graph.cli.options import AsJson, DataDir, OutFile, settings_of
from agent_graph.cli.output import DONE, finish, give, give_bytes, give_json, refuse, say
from agent_graph.core.jsonvalue import JsonObject, canonical
from agent_graph.core.sealing import ED25519, SHARED
from agent_graph.errors import InvalidArgument

if TYPE_CHECKING:
    from agent_graph.core.receipt_check import Checked
    from agent_graph.core.sealing import Verifier

FAULTY: Final = 1
SEALED: Final = {
    SHARED: "sealed by the shared key given, with which whoever has it can seal",
    ED25519: "sealed by the pair whose public half was given",
}
SHOWN: Final = 20
"""Faults that are shown one by one."""


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command("receipt")(receipt)
    app.command("verify")(verify)


def receipt(
    run_id: Annotated[str, typer.Argument(metavar="RUN", show_default=False)],
    *, bundle: Annotated[bool, typer.Option("--bundle", help="Also the events and the graph.")] = False,
    form: Annotated[str, typer.Option("--format", help="json, or dsse: in-toto in a DSSE envelope.")] = "json",
    expected: Annotated[
        str, typer.Option("--expect", metavar="DIGEST", help="Refuse a receipt of another digest.", show_default=False)
    ] = "",
    output: OutFile = None, as_json: AsJson = False, data_dir: DataDir = "",
) -> None:  # fmt: skip
    """Give the receipt of a run that has ended, as a file that can be checked anywhere."""

    async def work() -> int:
        if form not in ("json", "dsse"):
            raise InvalidArgument(f"a receipt comes as json or dsse, not as {form!r}", argument="format")
        asked: JsonObject = {"run_id": run_id, "include_bundle": bundle, "expected_digest": expected, "format": form}
        async with Desk(settings_of(data_dir), drives=False, remark=say) as desk:
            answer = await desk.call("graph_run_receipt", asked)
        if not answer["ok"]:
            return refuse(answer, as_json=as_json)
        if as_json:
            give_json(answer, to=output)
        else:
            data: Any = answer["data"]
            give_bytes(canonical(data["envelope"] if form == "dsse" else data) + b"\n", to=output)
            if output is not None:
                say(f"{data['integrity']['digest']}; check it: agent-graph verify {output}, with --key or --public")
        return DONE

    finish(work(), as_json=as_json)


def verify(
    file: Annotated[Path, typer.Argument(metavar="FILE", show_default=False)],
    *, key: Annotated[
        list[Path] | None,
        typer.Option("--key", metavar="FILE", help="The integrity key, which is a secret; may be given again.",
                     show_default=False),
    ] = None,
    public: Annotated[
        list[Path] | None,
        typer.Option("--public", metavar="FILE", help="The public half of a pair, in hexadecimal; may be given again.",
                     show_default=False),
    ] = None,
    any_form: Annotated[bool, typer.Option("--reformatted", help="A file that a program has laid out anew.")] = False,
    as_json: AsJson = False, data_dir: Annotated[
        str, typer.Option("--data-dir", help="Check with the keys of this data folder.", show_default=False)
    ] = "",
) -> None:  # fmt: skip
    """Check a receipt, offline: what was changed, removed, added or reordered is named. No run is looked up."""

    async def work() -> int:
        from agent_graph.core.receipt_file import check_file

        checked = check_file(_read(file), _verifiers(key or [], public or [], data_dir), any_form=any_form)
        if as_json:
            give_json(_envelope(checked))
        else:
            give(_told(checked))
        return FAULTY if checked.faults else DONE

    finish(work(), as_json=as_json)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidArgument(f"{path} cannot be read: {error.strerror}", argument="file") from error


def _verifiers(shared: list[Path], public: list[Path], data_dir: str) -> dict[str, Verifier]:
    """The keys to check with, by id; none are taken from a data folder that was not named.

    What a file is a key for is said and never guessed: read as a shared secret, a public half would let everybody seal.
    """
    from agent_graph.core.sealing import Ed25519Public, HmacKey

    found: dict[str, Verifier] = {}
    for path in shared:
        try:
            secret = HmacKey(_read(path))
        except ValueError as short:
            raise InvalidArgument(f"{path}: {short}", argument="key") from None
        found[secret.key_id] = secret
    for path in public:
        try:
            half = Ed25519Public(bytes.fromhex(_read(path).decode("ascii").strip()))
        except ValueError:
            message = (
                f"{path} is no public half of a pair: that is 64 hexadecimal digits, as `agent-graph keys show` has it"
            )
            raise InvalidArgument(message, argument="public") from None
        found[half.key_id] = half
    settings = settings_of(data_dir) if data_dir else None
    if settings is not None and settings.data_dir is not None:
        from agent_graph.engine.keys import known_keys

        found |= known_keys(settings.data_dir, path=settings.integrity_key_path)
    return found


def _envelope(checked: Checked) -> JsonObject:
    if checked.faults:
        first = checked.faults[0]
        return {
            "ok": False, "error_code": "RECEIPT_INTEGRITY_FAILURE", "error": f"{first.place}: {first.said}",
            "details": {"faults": [fault.to_json() for fault in checked.faults[:SHOWN]], "run_id": checked.run_id},
            "retryable": False,
        }  # fmt: skip
    return {"ok": True, "data": {
        "run_id": checked.run_id, "digest": checked.digest, "authentic": checked.authentic, "leaves": checked.leaves,
        "events": checked.events, "notes": [*checked.notes],
    }, "run_id": checked.run_id}  # fmt: skip


def _told(checked: Checked) -> str:
    if checked.faults:
        shown = [f"{fault.place}: {fault.said}" for fault in checked.faults[:SHOWN]]
        return "\n".join(["DOES NOT HOLD", *shown])
    events = "" if checked.events is None else f", {checked.events} events"
    sealed = SEALED[checked.sealed_by] if checked.authentic else "authenticity not checked"
    first = f"holds: run {checked.run_id}, {checked.leaves} leaves{events}; {sealed}"
    return "\n".join([first, checked.digest, *(f"note: {note}" for note in checked.notes)])
