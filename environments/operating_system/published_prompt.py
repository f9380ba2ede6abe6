"""Reads the published instruction and example from AgentBench's file, which users supply."""

import ast

from pydantic import TypeAdapter

from proctor.published import Source, Texts, beginning, injected, injections, value_of

_MESSAGES = TypeAdapter(list[dict[str, str]])


def _in_python(tree: ast.Module) -> Texts:
    """The instruction followed by the example's question, the example, and the lead-in to the task; empty if absent."""
    try:
        question, *example = _MESSAGES.validate_python(value_of(tree, "ONE_SHOT"))
    except ValueError:
        return []
    instruction = next(iter(injected(tree)), {})
    added = (node.value for node in ast.walk(tree) if isinstance(node, ast.AugAssign))
    bridge = next(filter(None, map(beginning, added)), "")
    contents = (message["content"] for message in injections(tree) if "content" in message)
    lead = next(filter(None, map(beginning, contents)), "")
    first = {**instruction, "content": instruction.get("content", "") + bridge + question.get("content", "")}
    return [first, *example, {"role": "user", "content": lead}]


PROMPT = Source(
    file="AgentBench v0.2's src/server/tasks/os_interaction/task.py",
    fingerprints=frozenset(("c05c9c9db4d2d0fa167bee2a3093a91d", "cd721e37d330989c0657d2505f3ac6a2")),
    in_python=_in_python,
    has_lead=True,
)
