"""What a plan would run, without running it."""

from eval_client.plan import Plan


def preview(plan: Plan, limit: int | None) -> str:
    """A line a pair, and the most model calls there can be; what only a controller knows is said to be unknown."""
    lines = []
    trials = calls = 0
    unbounded = False
    definitions = {definition.name: definition for definition in plan.definitions()}
    for agent, task in plan.pairs():
        if task not in definitions:
            lines.append(f"{agent} x {task}: samples known to the controller only")
            unbounded = True
            continue
        environment = definitions[task].build()
        samples = len(environment.samples()[:limit])
        turns = _most_turns(plan.limits.trial.turns, environment.max_turns)
        trials += samples * plan.epochs
        calls += samples * plan.epochs * (turns or 0)
        unbounded = unbounded or turns is None
        each = "turns unbounded (set limits.trial.turns)" if turns is None else f"at most {turns} turns each"
        lines.append(f"{agent} x {task}: {samples} samples x {plan.epochs} epochs, {each}")
    more = " and more that can't be known here" if unbounded else ""
    return "\n".join([*lines, f"total: {trials} trials, at most {calls} model calls{more}"])


def _most_turns(of_plan: int | None, of_environment: int | None) -> int | None:
    known = [turns for turns in (of_plan, of_environment) if turns is not None]
    return min(known) if known else None
