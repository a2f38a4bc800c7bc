"""How a person can decide is said for the ways that are open, and for no other."""

from __future__ import annotations

from agent_graph.core.deciding import how_to_decide


def said(*channels: str, console: str = "") -> str:
    return how_to_decide("apr-1", channels=channels, decisions=("approve", "reject"), console=console)


def test_an_open_gate_names_the_tool_and_the_terminal() -> None:
    assert said() == (
        "ask your human, then call graph_approval_decide with approval_id apr-1;"
        " or on a terminal: agent-graph approvals decide apr-1 approve|reject"
    )


def test_the_console_is_named_where_it_is_served() -> None:
    assert "; or in the console: http://127.0.0.1:8000/approvals/apr-1;" in said(console="http://127.0.0.1:8000/")


def test_a_gate_closed_to_models_says_so() -> None:
    closed = said("cli", "console")
    assert closed.startswith("a person has to decide, and no model can for them: on a terminal: agent-graph")
    assert "graph_approval_decide" not in closed
    assert said("console").endswith("in the console: agent-graph serve")
    assert "elicitation" in said("elicitation")
    assert not said("assistant", "cli").startswith("a person")
