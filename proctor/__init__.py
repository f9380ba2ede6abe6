"""Proctor's public Python API: write environments and agents, run evaluations, read results.

A name is imported when it is first used, so that `import proctor` is cheap.
"""

TYPE_CHECKING = False  # as in typing, whose import would double what this one costs
if TYPE_CHECKING:
    from eval_client.python.api import aevaluate, assert_scores, evaluate, open_run, play
    from eval_client.python.results import PlanError, Run, RunInterrupted, TrialResult, TurnResult
    from proctor.conformance.check import check
    from proctor.environment import (
        Agent,
        AgentStopped,
        AgentUnavailable,
        ContextLimitExceeded,
        Environment,
        EnvironmentFault,
        Policy,
        ServiceAway,
    )
    from proctor.session.play import PolicyAgent, play_to_finish
    from proctor.types import (
        Action,
        Finish,
        FinishReason,
        Message,
        Observation,
        ParsedAction,
        Summary,
        Tool,
        ToolCall,
        Usage,
        asked_and_answered,
    )

_MODULES = {
    "proctor.types": (
        "Action",
        "Finish",
        "FinishReason",
        "Message",
        "Observation",
        "ParsedAction",
        "Summary",
        "Tool",
        "ToolCall",
        "Usage",
        "asked_and_answered",
    ),
    "proctor.environment": (
        "Agent",
        "AgentStopped",
        "AgentUnavailable",
        "ContextLimitExceeded",
        "Environment",
        "EnvironmentFault",
        "Policy",
        "ServiceAway",
    ),
    "proctor.session.play": ("PolicyAgent", "play_to_finish"),
    "proctor.conformance.check": ("check",),
    "eval_client.python.api": ("aevaluate", "assert_scores", "evaluate", "open_run", "play"),
    "eval_client.python.results": ("PlanError", "Run", "RunInterrupted", "TrialResult", "TurnResult"),
}
"""The public names of each module."""
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "Action",
    "Agent",
    "AgentStopped",
    "AgentUnavailable",
    "ContextLimitExceeded",
    "Environment",
    "EnvironmentFault",
    "Finish",
    "FinishReason",
    "Message",
    "Observation",
    "ParsedAction",
    "PlanError",
    "Policy",
    "PolicyAgent",
    "Run",
    "RunInterrupted",
    "ServiceAway",
    "Summary",
    "Tool",
    "ToolCall",
    "TrialResult",
    "TurnResult",
    "Usage",
    "aevaluate",
    "asked_and_answered",
    "assert_scores",
    "check",
    "evaluate",
    "open_run",
    "play",
    "play_to_finish",
]


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # costs as much as the interpreter's own start

    if name == "Environment":
        from proctor.own_files.opened import watch

        watch()  # the user's file that asks for it may open its data next
    value = getattr(import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
