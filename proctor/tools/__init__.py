"""Function calling for environments: the functions offered to an agent, and its calls read as actions.

An environment declares its functions once, as a `Toolset`. Its session reads replies through a `ReplyReader`:
`TextReader` in protocol `text`, `CallReader` in protocol `tools`; the session itself is the same for both.
"""

from typing import Literal

from proctor.tools.functions import MAX_TEXT_BYTES, Arguments, Function, Toolset, arguments_schema, given_arguments
from proctor.tools.readers import (
    CallReader,
    ParsedReply,
    ReplyReader,
    TextReader,
    UnreadableCall,
    in_tools,
    parsed_action,
)

Protocol = Literal["text", "tools"]
OWN_FUNCTIONS = "the functions and their prompt are in Proctor's own words, not the published ones; use protocol: text"
"""Why scores in protocol `tools` are not comparable where function calls were published (AgentBench FC)."""
NO_PUBLISHED_FUNCTIONS = "no scores with function calls were published for this environment; use protocol: text"

__all__ = [
    "MAX_TEXT_BYTES",
    "NO_PUBLISHED_FUNCTIONS",
    "OWN_FUNCTIONS",
    "Arguments",
    "CallReader",
    "Function",
    "ParsedReply",
    "Protocol",
    "ReplyReader",
    "TextReader",
    "Toolset",
    "UnreadableCall",
    "arguments_schema",
    "given_arguments",
    "in_tools",
    "parsed_action",
]
