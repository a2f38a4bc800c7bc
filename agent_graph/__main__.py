"""`python -m agent_graph` is the command `agent-graph`."""

from __future__ import annotations

import sys

from agent_graph.cli.main import main

sys.exit(main())
