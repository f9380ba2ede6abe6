"""`environment: harbor`: tasks in the format of Harbor, played in our sandboxes and judged by their own verifiers."""

import base64
import gzip
import shlex
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

from pydantic import Field, PrivateAttr, model_validator

from environments.operating_system.functions import with_calls
from environments.operating_system.policies import bash, finish
from environments.operating_system.reply import shown
from proctor.config.problems import FieldError
from proctor.digest import json_digest
from proctor.environment import Agent, Environment, Policy
from proctor.sandbox.base import SandboxLimits
from proctor.summary import means
from proctor.tools import Protocol, parsed_action
from proctor.types import Action, Finish, Message, ParsedAction, Summary
from proctor_bridges.worlds.harbor.program import RELAY_IMAGE
from proctor_bridges.worlds.harbor.tasks import Granted, HarborTask, TaskSet, files_digest, listed, load, packed
from proctor_bridges.worlds.harbor.trial import TaskSession, reader

if TYPE_CHECKING:
    from proctor_bridges.worlds.harbor.sandboxes import Sandboxes

_CHUNK = 48_000
"""Characters in one action, whose text is limited."""
_PACKED, _STATUS = "/tmp/.solution.b64", "/logs/agent/oracle.status"
_ENDED = "solve.sh has ended with status"
_WAIT = (
    f"for i in $(seq 75); do [ -s {_STATUS} ] && break; sleep 0.2; done; "
    f'[ ! -s {_STATUS} ] || echo "{_ENDED} $(cat {_STATUS})"'
)


class Harbor(Environment):
    """Tasks in Harbor's format: an agent works in the shell of a task's container, whose verifier gives the reward."""

    data: Path
    """A folder of tasks, each a folder with a task.toml, or the folder of one task."""
    protocol: Protocol = "tools"
    """How agents act: by calls of `bash_action` and `finish_action`, or by the text of their replies."""
    network: Granted = "none"
    """The network of tasks whose task.toml wants a public one. `none`: they are left out. `bridge`: Docker's, by which
    agents reach every host that the engine reaches. Tasks that want no network get none. `relay`: as `none`, and agents
    of `kind: installed` play too: what installs them has the network of images' builds, and they themselves reach their
    endpoint's relay alone."""
    variables: dict[str, str] = Field(default_factory=dict)
    """Values for `${NAME}` in the tasks' environment variables. The agent can read them: no keys."""
    limits: SandboxLimits = SandboxLimits(memory_mb=2048, processes=1024, disk_mb=10_240)
    """Of tasks whose task.toml states no others."""
    runtime: str | None = None
    """Docker runtime, such as runsc; None for the engine's default."""
    agent_limit_s: float = Field(default=3600.0, gt=0, le=7 * 86_400)
    """The agent's time where task.toml states none."""
    time_factor: float = Field(default=1.0, gt=0, le=100)
    """By this the time limits of agents and verifiers are multiplied."""
    command_limit_s: float = Field(default=180.0, gt=0, le=3600)
    """Time limit of one command of the agent."""
    max_steps: int = Field(default=200, ge=1, le=100_000)
    """The most replies of a trial."""
    output_characters: int = Field(default=10_000, ge=100, le=1_000_000)
    """A longer output of a command is cut to so many."""
    reward: str | None = None
    """The reward that is the score, where a verifier gives several; None for `reward`, or the only one."""

    bad_replies: ClassVar[str | None] = "unreadable_replies"

    _sandboxes: "Sandboxes | None" = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _relay_shares_a_network(self) -> Self:
        if self.network == "relay" and self.runtime not in (None, "runc"):
            raise FieldError(("runtime",), "`network: relay` needs containers that share a network: leave it out")
        return self

    @cached_property
    def tasks(self) -> TaskSet:
        """The tasks of `data`. Raises ValueError with folder and reason."""
        return load(self.data, self.limits, self.network, self.variables)

    def samples(self) -> Sequence[str]:
        return tuple(self.tasks.tasks)

    def digest(self) -> str:
        shape = self.model_dump(mode="json", exclude={"data"})
        files = {id_: files_digest(task.folder) for id_, task in self.tasks.tasks.items()}
        return json_digest([type(self).__name__, self.revision, shape, files])

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        from proctor_bridges.worlds.harbor.sandboxes import Sandboxes  # needs the extra `os`

        needs = [RELAY_IMAGE] if self.network == "relay" else []
        async with Sandboxes(self.runtime, *needs).lifespan() as self._sandboxes:
            yield

    async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
        if self._sandboxes is None:
            raise RuntimeError("enter the environment's lifespan before playing")
        task = self._task(sample)
        async with self._sandboxes.box(task) as box:
            played = await TaskSession(task, box, self).play(agent)
        if isinstance(played, Finish):
            return played
        async with self._sandboxes.box(task, played.install) as box:
            return await TaskSession(task, box, self).play_by(played, agent)

    def parse_action(self, action: Action) -> ParsedAction | None:
        return parsed_action(reader(self.protocol), action, shown)

    def category(self, sample: str) -> str:
        """The category that the task's metadata state, else its difficulty."""
        metadata = self._task(sample).file.metadata
        return str(metadata.get("category") or metadata.get("difficulty") or "")[:255]

    def reference(self, sample: str, seed: int = 0) -> Policy:
        return self._speaking(solution(self._task(sample)))

    def naive(self, sample: str, seed: int = 0) -> Policy:
        return self._speaking(lambda _, __: finish())

    def summarize(self, finishes: Sequence[Finish]) -> Summary:
        scored = [finish for finish in finishes if finish.score is not None]
        scores = [float(finish.score or 0) for finish in scored]
        metrics = means({"mean_score": scores, "solved": [float(score == 1) for score in scores]})
        for name in ("tampered", "late", "spoiled"):
            metrics[name] = sum(finish.metrics.get(name, 0.0) for finish in scored)
        return Summary(primary="mean_score", metrics=metrics)

    @property
    def max_turns(self) -> int | None:
        return self.max_steps

    def not_comparable_because(self) -> str:
        reason = "agents work through Proctor's functions and sandboxes, not through Harbor's"
        if left_out := self.tasks.left_out:
            reason += (
                f"; {len(left_out)} of {len(left_out) + len(self.tasks.tasks)} tasks are left out: {listed(left_out)}"
            )
        if self.tasks.unknown:
            reason += f"; unknown fields of task.toml are ignored: {', '.join(self.tasks.unknown[:20])}"
        return reason

    def _speaking(self, policy: Policy) -> Policy:
        return with_calls(policy) if self.protocol == "tools" else policy

    def _task(self, sample: str) -> HarborTask:
        try:
            return self.tasks.tasks[sample]
        except KeyError:
            why = self.tasks.left_out.get(sample)
            raise ValueError(f"no task {sample!r} in {self.data}" if why is None else f"{sample}: {why}") from None


def solution(task: HarborTask) -> Policy:
    """A policy for protocol `text` that copies the folder `solution` in, runs its solve.sh to its end, and finishes."""
    if not (task.folder / "solution" / "solve.sh").is_file():
        raise ValueError(f"{task.folder.name}: it has no solution/solve.sh")
    text = base64.b64encode(gzip.compress(packed(task.folder / "solution", "solve.sh"), mtime=0)).decode()
    chunks = [text[begin : begin + _CHUNK] for begin in range(0, len(text), _CHUNK)]
    settings = shlex.join(f"{name}={value}" for name, value in task.solving.items())
    run = (
        f"base64 -d {_PACKED} | tar -xzf - -C / && rm -f {_PACKED}\n{{ env DEBIAN_FRONTEND=noninteractive {settings} "
        f"/solution/solve.sh >/logs/agent/oracle.txt 2>&1; echo $? >{_STATUS}; }} &\n{_WAIT}"
    )
    steps = [*(f"printf %s {chunk} >>{_PACKED}" for chunk in chunks), run]

    def policy(_: str, transcript: Sequence[Message]) -> Action:
        turn = sum(message.role == "assistant" for message in transcript)
        if turn < len(steps):
            return bash(steps[turn])
        return finish() if _ENDED in transcript[-1].content else bash(_WAIT)

    return policy
