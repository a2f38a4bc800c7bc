"""The extension ``io.modelcontextprotocol/tasks``: a run as a task of a client that knows tasks.

A task is nothing of its own. Its id is the run's, its state is made of the run when it is asked for, and so it is
there after a restart, for every client that may see the run, however the run was started. `view` is how a run looks as
a task, `asking` how its approvals look as questions to the client's human, `serving` the protocol.
"""
