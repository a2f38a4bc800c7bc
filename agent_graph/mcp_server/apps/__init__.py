"""Pages that a client shows beside a tool's answer: the extension MCP Apps."""
