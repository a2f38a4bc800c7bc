"""What an assistant is told once, when it connects: which tool when, how to wait, where a person decides."""

from __future__ import annotations

from typing import Final

MOST_BYTES: Final = 2_048
"""Clients put this into every conversation."""

INSTRUCTIONS: Final = """\
agent-graph runs multi-step work (councils of several model roles, critique loops, gated actions) as stored graphs on \
the user's own models. A run lives in this server: it goes on when a call ends, times out or is cancelled.

To get a council or another ready-made flow: graph_template_list, then graph_template_instantiate with register true, \
then graph_run_start. For a graph of your own: graph_create (action validate checks without storing; all issues come \
at once, each with a pointer and what to change). graph_list, graph_inspect and graph_render show what is stored. \
Where you can read resources, graph://schema/spec-v2 has the fields of a graph, graph://docs/index the documentation.

To run: graph_run_start answers a run_id at once. Then call graph_run_wait; it waits up to 45 s and answers as soon as \
there is something to say. timed_out true is no failure: call graph_run_wait again with its next_cursor. Never poll \
graph_run_get or graph_run_events in a loop. For what takes seconds, graph_execute does both in one call. \
Use until "waiting" where a person may have to decide. graph_run_get has \
the result (final_state), graph_run_state one value by JSON Pointer, graph_run_events what happened. A run that reads \
interrupted lacks something (graph_status says what); when it is there, graph_run_resume has the run go on.

A person decides: when a run is waiting, graph_approval_list shows the prompt and exactly what will happen. Show it to \
your human and pass on their word with graph_approval_decide and their name. Never decide yourself, never go on \
without the decision; the engine stops there in any case.

Refusals hold error_code, error (what to change) and retryable. Give an idempotency_key to whatever changes \
something, so that repeating a call after a lost answer is safe. Answers are cut at about 30 kB: truncated true, with \
`cut` naming what was cut; follow next_cursor or ask for a smaller part."""
