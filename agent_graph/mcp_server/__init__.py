"""The MCP door over the tool registry."""
