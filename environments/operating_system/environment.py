"""The OS interaction environment of AgentBench (arXiv 2308.03688, section 3 and appendix B)."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field, JsonValue, PrivateAttr, model_validator

from environments.operating_system import policies
from environments.operating_system.dataset import Dataset, SampleRecord, load, other_samples
from environments.operating_system.functions import toolset, with_calls
from environments.operating_system.overlay import Errata
from environments.operating_system.preflight import SampleFinding, has_way_out, inspect, require_whole_kernel
from environments.operating_system.prompt import OWN, PROMPT, TOOLS, opening
from environments.operating_system.reply import ShellAction, parse, shown
from environments.operating_system.scoring import OWN_FUNCTIONS_NOTE, OWN_PROMPT_NOTE, StrictCheck, summarize
from environments.operating_system.session import ROUNDS, OnInitError, Profile, SessionRules, ShellSession
from proctor.digest import json_digest
from proctor.environment import Agent, Environment, EnvironmentFault, Policy
from proctor.published import AGENTBENCH_SAMPLING, Opening, lowered
from proctor.sandbox.base import Engine, Sandbox, SandboxLimits
from proctor.sandbox.namespaces.engine import NamespaceEngine
from proctor.tools import OWN_FUNCTIONS, CallReader, Protocol, ReplyReader, TextReader, parsed_action
from proctor.types import Action, Finish, ParsedAction, Summary

_REVISIONS: Mapping[Profile, str] = {"compat": "3", "errata": "3", "strict": "5"}
"""Raise a profile's revision with every change to what its trials show or how they are scored."""
IMAGE, PUBLISHED_IMAGE = "proctor-os:latest", "local-os/default"
_READING = "2"
"""The revision of protocol `tools`, beside the profile's."""
SAMPLES = Path(__file__).with_name("samples")


@dataclass(frozen=True)
class _Dialogue:
    """What differs between the protocols."""

    prompt: Opening
    """The instruction in our own words."""
    wording: str
    """The note that says so."""
    reader: Callable[[Profile], ReplyReader[ShellAction]]
    """Reads the replies of one session."""
    speaks: Callable[[Policy], Policy]
    """Makes a policy for protocol `text` play this one."""


_DIALOGUES: Mapping[Protocol, _Dialogue] = {
    "text": _Dialogue(
        prompt=OWN,
        wording=OWN_PROMPT_NOTE,
        reader=lambda profile: TextReader(lambda reply: parse(reply, lenient=profile == "strict")),
        speaks=lambda policy: policy,
    ),
    "tools": _Dialogue(
        prompt=TOOLS,
        wording=OWN_FUNCTIONS_NOTE,
        reader=lambda profile: CallReader(toolset(thought_answers=profile == "compat"), strict=profile != "compat"),
        speaks=with_calls,
    ),
}


class OperatingSystem(Environment):
    """An agent works in a Linux shell; check scripts decide whether it succeeded."""

    data: Path | None = None
    """A published data file, or a folder of them; None for the samples shipped with Proctor."""
    scripts: Path | None = None
    """The split's script folder, or a folder with one for each split; None for a folder `scripts` near the data."""
    split: str | None = None
    """First part of the sample ids; None to derive it from the path of the data."""
    profile: Profile = "compat"
    """Rules of the score. `compat`: the published data. `errata`: the data corrected by the overlay. `strict`: the
    published data, but 0 if the agent changed programs or libraries that judge it."""
    protocol: Protocol = "text"
    """How agents act: by the text of their replies, or by calls of AgentBench FC's functions."""
    overlay: Path | None = None
    """Errata of your own; None for the shipped ones."""
    prompts: Path | None = None
    """File with another instruction and example, such as AgentBench's; None for our own. Python is parsed, not run."""
    engine: Literal["docker", "namespace"] = "docker"
    image: str = IMAGE
    """The Docker image for samples that name none."""
    runtime: str | None = None
    """Docker runtime, such as runsc; None for the engine's default."""
    limits: SandboxLimits = SandboxLimits()
    disk: Literal["auto", "quota", "tmpfs"] = "auto"
    """How a container's disk is limited to `limits.disk_mb`. `quota`: by the storage driver, an error if it has no
    quotas. `tmpfs`: writable folders in memory, the rest read-only. `auto`: a quota if the driver has one, else no
    limit."""
    network: Literal["none", "bridge"] = "none"
    """The containers' Docker network: `none`, or `bridge`, by which agents reach every host that the engine reaches."""
    pool: int = Field(default=2, ge=0, le=64)
    """Number of containers created in advance, from the second session on."""
    command_limit_s: float = Field(default=30.0, gt=0, le=3600)
    check_limit_s: float = Field(default=60.0, gt=0, le=3600)
    """Time limit of each init and check script."""
    on_init_error: OnInitError = "fail"
    """Whether a non-zero exit status of an init or start script is a fault (`fail`) or a warning (`continue`)."""
    strict_check: StrictCheck = "inside"
    """Where the published answer-only checkers run: `inside` the sandbox, or `outside`, beyond the agent's reach."""

    max_turns: ClassVar[int | None] = ROUNDS

    _engine: Engine | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _fields_fit_together(self) -> "OperatingSystem":
        if self.prompts is not None and self.protocol == "tools":
            raise ValueError("prompts: that is an instruction for text replies; remove it, or set protocol: text")
        if self.network == "bridge" and self.engine == "namespace":
            raise ValueError("network: bridge needs engine: docker")
        if self.profile == "strict" and (self.engine == "namespace" or self.disk == "tmpfs"):
            raise ValueError(
                "profile: strict needs engine: docker and a disk other than tmpfs, to see what agents change"
            )
        return self

    @cached_property
    def dataset(self) -> Dataset:
        """The samples. Raises ValueError with file, record, field and fix."""
        return load(self.data or SAMPLES, self.scripts, self.split or (None if self.data else "own"))

    @cached_property
    def errata(self) -> Errata:
        """The samples as corrected by the overlay. Raises ValueError with file, sample, field and fix."""
        return Errata(self.dataset, self.overlay)

    def samples(self) -> Sequence[str]:
        _ = self._prompt  # refuses a broken file before the first trial
        return tuple(self.dataset.records)

    def digest(self) -> str:
        shape = self.model_dump(mode="json", exclude={"data", "scripts", "overlay", "prompts", "pool", "protocol"})
        records = [(self._played(sample), self._judged(sample)) for sample in self.dataset.records]
        tools = self._dialogue.reader(self.profile).tools
        reading = [_READING, *tools] if tools else []
        return json_digest([_REVISIONS[self.profile], shape, records, opening("", self._prompt), *reading])

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        engine = self._make_engine()
        async with engine.lifespan():
            if self.runtime is not None:
                await require_whole_kernel(engine, self.runtime)
            self._engine = engine
            try:
                yield
            finally:
                self._engine = None

    @asynccontextmanager
    async def bridge(self) -> AsyncIterator[Engine | None]:
        """An engine whose sandboxes have a default route; None if there is none, or if the environment's own engine has
        network `bridge` or is `namespace`."""
        if self.network == "bridge" or self.engine == "namespace":
            yield None
            return
        engine = self.model_copy(update={"network": "bridge", "pool": 0})._make_engine()
        async with engine.lifespan():
            yield engine if await has_way_out(engine) else None

    async def preflight(self, sample: str, bridge: Engine | None = None) -> SampleFinding | None:
        """Why a sample can't be played or judged here; None if it can. Needs the lifespan, as `play` does."""
        if self._engine is None:
            raise RuntimeError("enter the environment's lifespan before playing")
        rules = replace(self._rules(), on_init_error="fail")
        return await inspect(self._played(sample), rules, self._engine, bridge)

    async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
        record = self._played(sample)
        async with self._sandbox(record) as sandbox:
            reader = self._dialogue.reader(self.profile)
            judged = self._judged(sample)
            return await ShellSession(sandbox, record, judged, self._rules(), self._prompt, reader).play(agent)

    def parse_action(self, action: Action) -> ParsedAction | None:
        return parsed_action(self._dialogue.reader(self.profile), action, shown)

    def category(self, sample: str) -> str:
        """The file that the sample is from, and whether its answer is matched or checked by scripts."""
        return f"{sample.rpartition('-')[0]} {self._record(sample).kind}"

    def reference(self, sample: str, seed: int = 0) -> Policy:
        return self._dialogue.speaks(policies.gold(self._played(sample)))

    def naive(self, sample: str, seed: int = 0) -> Policy:
        return self._dialogue.speaks(policies.naive)

    def random(self, sample: str, seed: int = 0) -> Policy:
        return self._dialogue.speaks(policies.random(sample, seed))

    def summarize(self, finishes: Sequence[Finish]) -> Summary:
        return summarize(finishes, self._dialogue.wording if self.prompts is None else None)

    @classmethod
    def detect_parameters(cls) -> dict[str, JsonValue]:
        problems = []
        for engine in ("docker", "namespace"):
            problem = asyncio.run(cls(engine=engine, pool=0)._sandbox_problem())
            if problem is None:
                return {"engine": engine}
            problems.append(f"{engine}: {problem}")
        raise EnvironmentFault("; ".join(problems))

    async def _sandbox_problem(self) -> str | None:
        """Creates a sandbox to try. Returns why that failed, or None."""
        try:
            engine = self._make_engine()
            async with engine.lifespan(), engine.sandbox():
                return None
        except (EnvironmentFault, ImportError) as error:
            return str(error)

    def not_comparable_because(self) -> str | None:
        if self.protocol == "tools":
            return OWN_FUNCTIONS
        if self.engine == "namespace":
            return "the namespace engine shows the programs of the host instead of the benchmark's image"
        if self.disk == "tmpfs":
            return "with disk: tmpfs an agent can write to a few places only"
        if self.data is None:
            return "the samples shipped with Proctor are not the published ones"
        if self.profile == "errata":
            return "the errata profile corrects published samples"
        if self.profile == "strict":
            return "the profile 'strict' gives 0 where the agent changed what judges it; use compat"
        if self.on_init_error == "continue":
            return "the published runs don't go on after an init script that failed; set on_init_error: fail"
        if self.image not in (IMAGE, PUBLISHED_IMAGE):
            return f"the image is {self.image}, neither {IMAGE} nor AgentBench's {PUBLISHED_IMAGE}"
        low = lowered(self.limits, *SandboxLimits.model_fields) or lowered(self, "command_limit_s", "check_limit_s")
        return low or PROMPT.differs(self.prompts, self._prompt) or other_samples(self.dataset)

    def published_sampling(self) -> Mapping[str, JsonValue]:
        return AGENTBENCH_SAMPLING

    def trusted_agents_only(self) -> bool:
        return self.engine == "namespace"

    @property
    def _dialogue(self) -> _Dialogue:
        return _DIALOGUES[self.protocol]

    @cached_property
    def _prompt(self) -> Opening:
        return self._dialogue.prompt if self.prompts is None else PROMPT.read(self.prompts)

    def _sandbox(self, record: SampleRecord) -> AbstractAsyncContextManager[Sandbox]:
        if self._engine is None:
            raise RuntimeError("enter the environment's lifespan before playing")
        return self._engine.sandbox(record.image)

    def _record(self, sample: str) -> SampleRecord:
        try:
            return self.dataset.records[sample]
        except KeyError:
            raise ValueError(f"no sample {sample!r}; ids look like {next(iter(self.dataset.records))}") from None

    def _played(self, sample: str) -> SampleRecord:
        """The sample that this profile plays."""
        published = self._record(sample)
        return self.errata.corrected(published) if self.profile == "errata" else published

    def _judged(self, sample: str) -> dict[Profile, SampleRecord]:
        """The sample, by the data to judge it with: published and corrected if one play fits both, else one of them."""
        published = self._record(sample)
        both: dict[Profile, SampleRecord] = {"compat": published, "errata": self.errata.corrected(published)}
        data: Profile = "errata" if self.profile == "errata" else "compat"
        return both if self.errata.same_play(published) else {data: both[data]}

    def _rules(self) -> SessionRules:
        return SessionRules(
            profile=self.profile,
            command_limit_s=self.command_limit_s,
            check_limit_s=self.check_limit_s,
            on_init_error=self.on_init_error,
            strict_check=self.strict_check,
        )

    def _make_engine(self) -> Engine:
        if self.engine == "namespace":
            return NamespaceEngine(self.limits)
        from proctor.sandbox.docker_engine import DockerEngine  # needs the extra `os`

        return DockerEngine(
            self.image, self.limits, pool=self.pool, runtime=self.runtime, disk=self.disk, network=self.network
        )
