"""Checks a file that holds a receipt in any of its forms; the file is given as bytes, none is opened."""

from __future__ import annotations

from collections.abc import Mapping

from agent_graph.core.dsse import check_envelope, is_envelope
from agent_graph.core.jsonvalue import canonical, parse_json
from agent_graph.core.receipt_chain import MOST_BYTES, MOST_DEPTH, Fault
from agent_graph.core.receipt_check import Checked, broken, check
from agent_graph.core.sealing import Verifier
from agent_graph.errors import InvalidRequest


def check_file(data: bytes, verifiers: Mapping[str, Verifier], *, any_form: bool = False) -> Checked:
    """{receipt, integrity, bundle?} or a DSSE envelope, in canonical form with one newline behind it or none.

    With `any_form` the JSON may be laid out otherwise: then only what it says is checked.
    """
    try:
        document = parse_json(data, max_bytes=MOST_BYTES, max_depth=MOST_DEPTH)
    except InvalidRequest as wrong:
        return broken(Fault("file", f"cannot be read: {wrong.message}"))
    if not any_form and (at := _departs(data.removesuffix(b"\n"), canonical(document))) is not None:
        said = f"is not in canonical form from byte {at} on (a file that was only laid out anew: --reformatted)"
        return broken(Fault("file", said))
    return check_envelope(document, verifiers) if is_envelope(document) else check(document, verifiers)


def _departs(found: bytes, wanted: bytes) -> int | None:
    """The first byte in which they differ."""
    if found == wanted:
        return None
    pairs = enumerate(zip(found, wanted, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(found), len(wanted)))
