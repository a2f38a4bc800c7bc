"""A graph as SVG: `layers` says where its nodes stand, `picture` what is drawn there."""

from __future__ import annotations

from agent_graph.console.drawing.picture import drawn as drawn
