"""The published instruction and its confirmation, read from AgentBench's file, which the user provides."""

from proctor.published import Source

PROMPT = Source(
    file="AgentBench v0.2's src/server/tasks/dbbench/__init__.py",
    fingerprints=frozenset(("a49a1ce33a30ffc0d206bb21944c250d",)),
)
