"""An edit at a gate: a JSON Patch (RFC 6902) on the subject, bounded, and held to the subject's schema; pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from agent_graph.core import patch, schema
from agent_graph.core.jsonvalue import JsonObject, JsonValue, check_value, json_equal
from agent_graph.core.limits import Limits
from agent_graph.errors import ApprovalEditInvalid, InvalidRequest

STEPS: Final = 100
"""Steps of one patch."""


def edited(subject: JsonValue, steps: Sequence[JsonObject], *, subject_schema: JsonObject, limits: Limits) -> JsonValue:
    """`subject` after `steps`; what was given stays as it is.

    Raises `ApprovalEditInvalid`: there is no step or too many, one does not fit, the result is the same as before, is
    larger or deeper than a value may be, or does not fit `subject_schema` (details.violations).
    """
    if not 0 < len(steps) <= STEPS:
        raise ApprovalEditInvalid(f"an edit takes a patch of 1 to {STEPS} steps; this one has {len(steps)}")
    try:
        changed = patch.applied(subject, steps, max_bytes=limits.value_bytes)
        check_value(changed, max_depth=limits.json_depth, max_bytes=limits.value_bytes)
    except (patch.PatchFailed, InvalidRequest) as wrong:
        raise ApprovalEditInvalid(f"the patch cannot be applied to the subject: {wrong}") from wrong
    if json_equal(changed, subject):
        raise ApprovalEditInvalid("the patch changes nothing; approve instead")
    if subject_schema and (found := schema.violations(changed, subject_schema)):
        message = f"the edited subject does not fit its schema: {found[0]}"
        raise ApprovalEditInvalid(message, violations=list(found))
    return changed
