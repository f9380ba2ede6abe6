"""The published instruction and example, read from AgentBench's file, which the user provides."""

import ast
from itertools import islice

from proctor.published import Source, Texts, in_turns, injected
from proctor.python_file import value_of

_INSTRUCTION_AND_CONSENT = 2


def _in_python(tree: ast.Module) -> Texts:
    """The first two messages of the file, then the texts of the example, in turns."""
    example = value_of(tree, "ONE_SHOT")
    texts = [text for text in example if isinstance(text, str)] if isinstance(example, list) else []
    return [*islice(injected(tree), _INSTRUCTION_AND_CONSENT), *in_turns(texts)]


PROMPT = Source(
    file="AgentBench v0.2's src/server/tasks/knowledgegraph/task.py",
    fingerprints=frozenset(("9dbb9c49be829fc40ad38f77ea463584",)),
    in_python=_in_python,
)
