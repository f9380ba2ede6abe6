"""The facts of a run that every export carries, pair by pair."""

from pydantic import JsonValue

from eval_client.plan.entries import AgentEntry
from eval_client.report.comparability import shaping_parameters
from eval_client.report.pair_report import PairReport
from eval_client.report.report import report
from eval_client.store.store import Store
from eval_client.store.tables import trial_table
from eval_client.store.values import parsed
from proctor.digest import digest_of
from proctor.types import Value


class ExportedPair(Value):
    """An agent on a task: what its trials have in common."""

    run: str
    digest: str
    """The run's: of the plan's fields that shape a trial, and of its tasks."""
    version: str
    """Proctor's, when the run began."""
    created_at: str
    endpoint: str
    """The name of the agent's endpoint, never its address."""
    model: str
    sampling: dict[str, JsonValue]
    turn_limit: int | None
    """The plan's `limits.trial.turns`."""
    task_digest: str
    profile: str | None
    """The parameter of this name, where the task has one."""
    result: PairReport

    def provenance(self) -> dict[str, JsonValue]:
        """What a reader needs to find the run again and to judge its scores."""
        told: dict[str, JsonValue] = {
            "run": self.run,
            "run_digest": self.digest,
            "task_digest": self.task_digest,
            "proctor": self.version,
            "environment": self.result.environment,
            "protocol": self.result.protocol,
            "profile": self.profile,
            "not_comparable_because": self.result.comparable,
        }
        return {name: value for name, value in told.items() if value is not None}


def _unplanned(agent: str) -> AgentEntry:
    return AgentEntry(name=agent)


def exported_pairs(store: Store) -> list[ExportedPair]:
    """The pairs of a run, in the order of its report. Raises StoreError, DatabaseError."""
    manifest, created_at = store.manifest(), store.created_at()
    plan, tasks = manifest.read_plan(), manifest.digests()
    digest = digest_of({"identity": manifest.identity, "tasks": tasks})
    agents = {agent.name: agent for agent in plan.agents}
    found = []
    for pair in report(store).pairs:
        agent = agents.get(pair.agent) or parsed(trial_table.c.agent, _unplanned, pair.agent)
        profile = (shaping_parameters(manifest, pair.task) or {}).get("profile")
        found.append(
            ExportedPair(
                run=store.run,
                digest=digest,
                version=manifest.version,
                created_at=created_at,
                endpoint=plan.endpoint_of(agent).name,
                model=agent.model or agent.name,
                sampling=agent.sampling,
                turn_limit=plan.limits.trial.turns,
                task_digest=tasks[pair.task],
                profile=None if profile is None else str(profile),
                result=pair,
            )
        )
    return found
