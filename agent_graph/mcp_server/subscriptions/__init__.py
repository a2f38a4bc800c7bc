"""Who is told that something changed, in both eras of the protocol.

`hub` knows who follows what; `legacy` is ``resources/subscribe`` up to 2025-11-25, `listening` is
``subscriptions/listen`` since 2026-07-28. Nobody is told what changed, only that it is worth reading again: several
changes in a short time are one notification, and the last is never left out.
"""
