"""What can be read without calling a tool, under addresses that begin with ``graph://``.

`table` says which address is which tool with which arguments; `statement` makes one answer of it, with what it claims,
what that rests on and what it does not know; `serving` is the protocol around it.
"""
