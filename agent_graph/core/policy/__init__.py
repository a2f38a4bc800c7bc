"""What a graph is held to before it may run: profiles of rules, and the verdict on a graph; it runs nothing.

::

    profile + override ─tighten─▶ effective profile ┐
                          graph + what it starts with ┴─judge─▶ allow | review | deny, with every finding

It fails closed: an unknown profile, an override that cannot be read, one that would loosen where that is not allowed,
and a bug in a rule all deny.
"""

from agent_graph.core.policy.book import PolicyBook
from agent_graph.core.policy.case import Case, Finding
from agent_graph.core.policy.profile import Profile
from agent_graph.core.policy.verdict import Verdict

__all__ = ["Case", "Finding", "PolicyBook", "Profile", "Verdict"]
