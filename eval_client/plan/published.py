"""Pure: what in a plan keeps scores from standing beside published ones, whatever a task's data are."""

from collections.abc import Mapping

from pydantic import JsonValue

from eval_client.plan.entries import AgentEntry, TrialLimits
from eval_client.plan.plan import Plan

_FORM = {"system_role": "system", "reasoning": "auto"}
"""How published requests were written, where a plan can have them written otherwise."""


def other_play(plan: Plan, task: str, rounds: int | None) -> str | None:
    """Why a task is not played as it was for published scores; None where it is.

    `rounds` are the most turns of a session; None where they are unknown.
    """
    played = (plan.agent(agent) for agent, of in plan.pairs() if of == task)
    names = [f"{agent.name} ({agent.harness})" for agent in played if agent.command]
    if names:
        return f"the loop is not the published one: {', '.join(names)}"
    return _limited(plan.limits.trial, rounds)


def _limited(limits: TrialLimits, rounds: int | None) -> str | None:
    for name, value in (("tokens", limits.tokens), ("seconds", limits.seconds)):
        if value is not None:
            return f"limits.trial.{name} is {value}, and published trials had no such limit; leave it out"
    if limits.turns is None or (rounds is not None and limits.turns >= rounds):
        return None
    least = "leave it out" if rounds is None else f"published trials had {rounds} turns; leave it out"
    return f"limits.trial.turns is {limits.turns}; {least}"


def other_sampling(agent: AgentEntry, published: Mapping[str, JsonValue]) -> str | None:
    """Why an agent is not asked as those behind published scores were; None where it is, or where no model is asked."""
    if agent.is_function and published:
        return f"how the function {agent.name} asks a model is not known"
    if not agent.is_model or not published:
        return None
    from proctor.published import unlike  # only where scores were published: 4 ms

    given = dict(agent.sampling)
    if "max_tokens" not in given and "max_completion_tokens" in given:
        given["max_tokens"] = given.pop("max_completion_tokens")
    others, beside = unlike(given, published)
    if others:
        wanted = ", ".join(f"{name}: {published[name]}" for name in others)
        return f"the published agents had {wanted}; set it in the `sampling` of {agent.name}"
    if beside:
        return f"the published agents had no {', '.join(beside)}; leave it out of the `sampling` of {agent.name}"
    changed = [name for name, usual in _FORM.items() if getattr(agent, name) != usual]
    return f"the published agents had no {', '.join(changed)}; leave it out of {agent.name}" if changed else None
