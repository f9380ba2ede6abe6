"""Narrows a plan to the agents and tasks that were chosen on the command line."""

from collections.abc import Collection, Mapping, Sequence

from eval_client.core.selection import (
    Catalogue,
    ChosenSamples,
    Filters,
    SelectionError,
    check_matched,
    choose,
    matches,
    no_match,
)
from eval_client.plan.entries import Assignment
from eval_client.plan.plan import Plan


def narrowed(plan: Plan, filters: Filters) -> Plan:
    """The plan with the chosen agents and tasks alone. Raises SelectionError where nothing is left."""
    if not (filters.tasks or filters.agents):
        return plan
    check_matched("--task", filters.tasks, [task.name for task in plan.tasks])
    check_matched("--agent", filters.agents, [agent.name for agent in plan.agents])
    pairs = [
        (agent, task) for agent, task in plan.pairs() if _chosen(filters.agents, agent) and _chosen(filters.tasks, task)
    ]
    if not pairs:
        raise SelectionError("--agent, --task: the plan assigns none of these tasks to any of these agents")
    played = {agent for agent, _ in pairs}, {task for _, task in pairs}
    return plan.model_copy(
        update={
            "agents": tuple(agent for agent in plan.agents if agent.name in played[0]),
            "tasks": tuple(task for task in plan.tasks if task.name in played[1]),
            "assignments": tuple(Assignment(agents=(agent,), tasks=(task,)) for agent, task in pairs)
            if plan.assignments
            else (),
        }
    )


def with_left_out(filters: Filters, plan: Plan) -> Filters:
    """The filters with a line on the agents and one on the tasks that they leave out of a whole plan."""
    kept = narrowed(plan, filters)
    lines = [
        _left_out("agents", [each.name for each in plan.agents], {each.name for each in kept.agents}),
        _left_out("tasks", [each.name for each in plan.tasks], {each.name for each in kept.tasks}),
    ]
    return filters.model_copy(update={"left_out": tuple(line for line in lines if line)})


def choose_samples(
    plan: Plan, catalogues: Mapping[str, Catalogue], filters: Filters, limit: int | None
) -> dict[str, ChosenSamples]:
    """The samples that a run plays, by task. Raises SelectionError where a pattern matches no sample."""
    for pattern in (*filters.samples, *filters.added):
        if not any(matches((pattern,), name, task) for task, of in catalogues.items() for name in of.cluster_of):
            raise no_match(
                "--sample", pattern, [f"{task}/{name}" for task, of in catalogues.items() for name in of.cluster_of]
            )
    selections = {task.name: task.samples for task in plan.tasks}
    chosen = {task: choose(task, of, selections[task], filters, limit) for task, of in catalogues.items()}
    if chosen and not any(each.samples for each in chosen.values()):
        raise SelectionError("--sample, --exclude: no sample is left to play; let --exclude match fewer")
    return chosen


def _chosen(patterns: Sequence[str], name: str) -> bool:
    return not patterns or matches(patterns, name)


def _left_out(kind: str, names: Sequence[str], kept: Collection[str]) -> str:
    left_out = [name for name in names if name not in kept]
    return f"{kind} of the plan left out by --agent or --task: {', '.join(left_out)}" if left_out else ""
