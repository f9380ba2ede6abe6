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
    )

_MODULES = (
    "proctor.types",
    "proctor.environment",
    "proctor.session.play",
    "proctor.conformance.check",
    "eval_client.python.results",
    "eval_client.python.api",
)
"""The modules that have the public names; each imports those before it, or is cheap beside the next."""

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
    "assert_scores",
    "check",
    "evaluate",
    "open_run",
    "play",
    "play_to_finish",
]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # costs as much as the interpreter's own start

    if name == "Environment":
        from proctor.own_files.opened import watch

        watch()  # the user's file that asks for it may open its data next
    value = next(found for module in _MODULES if (found := getattr(import_module(module), name, None)) is not None)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
