"""A run as one page of HTML that needs nothing else: gathered from the tools, told as steps, made without a script."""
