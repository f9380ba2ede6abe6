"""What exports of whole trials have in common: the facts of a pair, and what was said, each message once."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue
from pydantic_core import from_json

from eval_client.plan.entries import AgentEntry
from eval_client.report.pair_report import PairReport
from eval_client.report.report import report
from eval_client.report.scrub import publishable
from eval_client.store.store import Store
from eval_client.store.tables import trial_table
from eval_client.store.trials.trajectory import ConversationTurn
from eval_client.store.values import parsed
from proctor.digest import digest_of
from proctor.types import Finish, Message, Tool, Value

Json = dict[str, JsonValue]


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


def exported_pairs(store: Store) -> list[ExportedPair]:
    """The pairs of a run, in the order of its report. Raises StoreError, DatabaseError."""
    manifest, created_at = store.manifest(), store.created_at()
    plan, tasks = manifest.read_plan(), manifest.digests()
    digest = digest_of({"identity": manifest.identity, "tasks": tasks})
    agents = {agent.name: agent for agent in plan.agents}
    found = []
    for pair in report(store).pairs:
        agent = agents.get(pair.agent) or parsed(trial_table.c.agent, lambda name: AgentEntry(name=name), pair.agent)
        profile = (manifest.parameters(pair.task) or {}).get("profile")
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


def cause_of(finish: Finish) -> str:
    """Why a trial has no score, without addresses and paths."""
    return publishable(str(finish.detail.get("cause") or finish.reason.value))


def arguments_object(text: str) -> Json | None:
    """The arguments of a call as an object; None where the model wrote something else, such as the number 1e999."""
    try:
        read = from_json(text, allow_inf_nan=False)
        json.dumps(read, allow_nan=False)
    except ValueError:
        return None
    return read if isinstance(read, dict) else None


@dataclass(frozen=True)
class Said:
    """A message, and the turn in which the agent gave it; None where it is the environment's."""

    message: Message
    turn: ConversationTurn | None = None


@dataclass
class Spoken:
    """One conversation. A history that the environment shortens or words anew is given as it was first sent."""

    name: str
    said: list[Said] = field(default_factory=list)
    tools: tuple[Tool, ...] = ()
    opening: tuple[Message, ...] = ()
    """The worked examples' answers: the assistant messages of the first history."""
    stopped: ConversationTurn | None = None
    """The turn that the agent did not answer, where there is one."""

    def answers(self) -> list[ConversationTurn]:
        """The turns in which the agent answered."""
        return [said.turn for said in self.said if said.turn is not None]

    def messages(self) -> list[Message]:
        return [said.message for said in self.said]


def spoken(turns: Iterable[ConversationTurn]) -> list[Spoken]:
    """The conversations of a trial, in the order in which they began.

    A history that is discarded with every answer of the agent begins another conversation, named `main-2` and so on.
    """
    begun: list[Spoken] = []
    current: dict[str, Spoken] = {}
    counts = Counter[str]()
    for turn in turns:
        history = (*turn.earlier, *turn.messages)
        one = current.get(turn.conversation)
        if one is None or (turn.fresh and _assistants(history) == one.opening):
            counts[turn.conversation] += 1
            number = counts[turn.conversation]
            one = Spoken(turn.conversation if number == 1 else f"{turn.conversation}-{number}")
            one.opening = _assistants(history)
            begun.append(one)
            current[turn.conversation] = one
            new: Sequence[Message] = history
        else:
            last = max((at for at, message in enumerate(history) if message.role == "assistant"), default=-1)
            new = history[last + 1 :] if turn.fresh else turn.messages
        one.said += [Said(message) for message in new]
        one.tools = turn.tools or one.tools
        if turn.action is not None:
            one.said.append(Said(turn.action.message(), turn))
        elif one.stopped is None:
            one.stopped = turn
    return begun


def _assistants(history: Sequence[Message]) -> tuple[Message, ...]:
    return tuple(message for message in history if message.role == "assistant")
