"""The digital card game environment (arXiv 2308.03688, section 3 and Appendix E)."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import ClassVar

from pydantic import Field, model_validator

from environments.card_game import policies, prompt
from environments.card_game.conversation import opened
from environments.card_game.functions import BOTH
from environments.card_game.rules.engine import FIRST_PHASE, LAST_PHASE
from environments.card_game.rules.opponents import NAMES
from environments.card_game.rules.variants import Profile
from environments.card_game.sample_game import SampleGame, Setup, Stage
from environments.card_game.session import TRIES, CardGameSession
from environments.card_game.summary import FUNCTIONS, WORDING, summarize
from proctor.digest import json_digest
from proctor.environment import Agent, Environment, Policy
from proctor.tools import NO_PUBLISHED_FUNCTIONS, Protocol, in_tools
from proctor.types import Finish, Summary

PUBLISHED_REPETITIONS = (3, 5)
_REVISION = "2"
"""To be changed with any change of behaviour that shapes a trial."""
_READINGS: Mapping[Profile, str] = {"compat": "2", "paper": "2", "strict": "3"}
"""Those of how replies are read in profile `strict` and in protocol `tools`."""
_ROUNDS = (LAST_PHASE - FIRST_PHASE + 1) // 4 + 1


class CardGame(Environment):
    """A battle of four fish against four whose order is hidden, with a scripted opponent."""

    profile: Profile = "compat"
    """`compat`: the published code; `strict`: the same with its mistakes repaired; `paper`: the rules of the paper."""
    protocol: Protocol = Field(default="text", exclude_if=lambda protocol: protocol == "text")
    """`text`: a reply's text holds the move as JSON; `tools`: the agent calls functions."""
    repetitions: int = Field(default=3, ge=1, le=100_000)
    """Games for each opponent and seat: 3 in the published dev split, 5 in the standard one."""
    stages: tuple[Stage, ...] | None = Field(default=None, min_length=1)
    """1 without guesses, 2 with; None for the profile's own: both in `paper`, 2 in the others."""
    explain_rules: bool = False
    """Adds to the prompt where the rules of the code differ from those in the prompt."""
    legacy_agent_bugs: bool = False
    """Reads replies and offers positions as the published code does, with its mistakes."""
    max_agent_calls: int | None = Field(default=None, ge=1)
    """A game is stopped after this many replies, and its leader wins; None for no limit."""

    max_turns: ClassVar[int | None] = _ROUNDS * 2 * TRIES
    bad_replies: ClassVar[str | None] = "bad_replies"
    capacity: ClassVar[int] = 32
    scales: ClassVar[Mapping[str, tuple[float, float]]] = {"score": (0.0, 1.0)}

    @model_validator(mode="after")
    def _fields_fit_together(self) -> "CardGame":
        if self.stages is not None and len(set(self.stages)) < len(self.stages):
            raise ValueError("stages: a stage stands twice; name each once")
        if self.profile == "paper" and self.explain_rules:
            raise ValueError(
                "explain_rules: the profile `paper` plays by the rules of its prompt; remove one of the two"
            )
        if self.profile != "compat" and self.legacy_agent_bugs:
            raise ValueError("legacy_agent_bugs: only the profile `compat` has them; set profile: compat")
        return self

    def samples(self) -> Sequence[str]:
        return tuple(self._setups)

    def digest(self) -> str:
        by_stage = {setup.stage: setup for setup in self._setups.values()}
        rules = [
            prompt.rules(name, setup, self.explain_rules, self.protocol)
            for setup in by_stage.values()
            for name in ("guess", "act")
        ]
        reading = [_READINGS[self.profile]] if self.profile == "strict" or self.protocol == "tools" else []
        return json_digest([_REVISION, self.model_dump(mode="json"), rules, prompt.CONFIRMATION, *reading])

    async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
        match = SampleGame(self.setup(sample), seed)
        guessing, acting = opened(match.setup, self.explain_rules, self.protocol)
        return await CardGameSession(match, agent, guessing, acting, self.max_agent_calls).play()

    def cluster(self, sample: str) -> str:
        """The deal: opponent, stage and repetition, whose games from both seats share it."""
        setup = self.setup(sample)
        return f"{setup.opponent}-stage{setup.stage}-{setup.repetition}"

    def category(self, sample: str) -> str:
        """The opponent and the stage."""
        setup = self.setup(sample)
        return f"{setup.opponent}-stage{setup.stage}"

    def reference(self, sample: str, seed: int = 0) -> Policy:
        return self._in_protocol(policies.reference(self.setup(sample), seed))

    def naive(self, sample: str, seed: int = 0) -> Policy:
        return self._in_protocol(policies.blind_aoe(self.setup(sample), seed))

    def random(self, sample: str, seed: int = 0) -> Policy:
        return self._in_protocol(policies.random_agent(self.setup(sample), seed))

    def summarize(self, finishes: Sequence[Finish]) -> Summary:
        wording = FUNCTIONS if self.protocol == "tools" else WORDING
        return summarize(finishes, self.legacy_agent_bugs, self._stages, wording)

    def not_comparable_because(self) -> str:
        if self.protocol == "tools":
            return NO_PUBLISHED_FUNCTIONS
        if self.profile == "paper":
            return "the profile `paper` has the rules of the paper's text, which differ from the published code's"
        if self.profile == "strict":
            return "the profile `strict` repairs faults of the published code; use compat"
        if self.stages not in (None, (2,)):
            return "the published games are of stage 2 only"
        if self.explain_rules:
            return "the prompt has rules that the published prompts leave out; set explain_rules: false"
        if self.max_agent_calls is not None:
            return "the published games have no limit of calls; remove max_agent_calls"
        if self.repetitions not in PUBLISHED_REPETITIONS:
            return "the published splits have 3 repetitions (dev) or 5 (standard); set repetitions to one of them"
        if not self.legacy_agent_bugs:
            return "the published code refuses an agent's eel AOE and sunfish Infight; set legacy_agent_bugs: true"
        return "the prompts are in Proctor's own words; the published ones can't be given"

    def _in_protocol(self, policy: Policy) -> Policy:
        """A policy written for `text`, in the protocol of this environment."""
        return in_tools(policy, str, str, BOTH) if self.protocol == "tools" else policy

    @property
    def _stages(self) -> tuple[Stage, ...]:
        return self.stages or ((1, 2) if self.profile == "paper" else (2,))

    @cached_property
    def _setups(self) -> Mapping[str, Setup]:
        setups = [
            Setup(opponent, seat, repetition, stage, self.profile, self.legacy_agent_bugs)
            for stage in self._stages
            for opponent in NAMES
            for seat in (0, 1)
            for repetition in range(self.repetitions)
        ]
        return {setup.sample: setup for setup in setups}

    def setup(self, sample: str) -> Setup:
        """The setup of a sample. Raises ValueError where no sample has this id."""
        if sample not in self._setups:
            raise ValueError(f"no sample {sample!r}; ids look like {next(iter(self._setups))}")
        return self._setups[sample]
