"""The source of the published instruction and example: AgentBench's file, which users supply."""

from proctor.published import Source

PROMPT = Source(
    file="AgentBench v0.2's src/server/tasks/webshop/__init__.py",
    fingerprints=frozenset(("0b2311d79879a35b2dd1afe8a798ada6",)),
)
