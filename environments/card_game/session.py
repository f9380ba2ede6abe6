"""One session: the agent guesses and acts in two conversations, until the game is decided or the agent fails."""

from dataclasses import dataclass, field

from environments.card_game import prompt
from environments.card_game.conversation import Conversation, limit_reason, metrics
from environments.card_game.replay import replay
from environments.card_game.reply import IllegalReply
from environments.card_game.rules.moves import Assert, Move, Pass
from environments.card_game.sample_game import SampleGame
from environments.card_game.scoring import ALL_HP, score, win
from proctor.environment import Agent, AgentStopped
from proctor.types import Finish, FinishReason, asked_and_answered

TRIES = 5
"""Replies to one prompt; the session ends, or a guess becomes a pass, where none of them is accepted."""


@dataclass
class CardGameSession:
    """A match and the agent that plays it."""

    match: SampleGame
    agent: Agent
    guessing: Conversation
    acting: Conversation
    max_calls: int | None = None
    calls: int = field(default=0, init=False)
    guesses: int = field(default=0, init=False)
    right_guesses: int = field(default=0, init=False)
    bad_replies: int = field(default=0, init=False)

    async def play(self) -> Finish:
        """Plays the match until it is decided or the agent fails, and scores it. Raises AgentUnavailable."""
        try:
            reason = await self._play()
        except AgentStopped as stopped:
            reason = stopped.reason
        if reason is FinishReason.TURN_LIMIT:
            self.match.game.stop()
        return self._finish(reason)

    async def _play(self) -> FinishReason:
        while not self.match.over:
            if self.match.game.asserting:
                await self._guess()
                continue
            move = await self._tried(self.acting, prompt.act_state(self.match))
            if isinstance(move, IllegalReply):
                return FinishReason.INVALID_ACTION if move.parsed else FinishReason.INVALID_FORMAT
            self.match.play(move)
        return FinishReason.COMPLETED

    async def _guess(self) -> None:
        move = await self._tried(self.guessing, prompt.guess_state(self.match))
        if isinstance(move, IllegalReply):
            self.match.play(Pass())
            return
        phase = len(self.match.phases)
        self.match.play(move)
        played = self.match.phases[phase]
        self.guesses += isinstance(played.move, Assert)
        self.right_guesses += played.right

    async def _tried(self, conversation: Conversation, state: str) -> Move | IllegalReply:
        """The move of the first accepted reply among five; the IllegalReply records whether any of them was JSON."""
        parsed, asked = False, state
        for _ in range(TRIES):
            if self.calls == self.max_calls:
                raise AgentStopped(limit_reason(self.guessing, self.acting))
            self.calls += 1
            action = await self.agent.act(conversation.ask(asked))
            move = self._read(conversation.read(action))
            if not isinstance(move, IllegalReply):
                conversation.accept(asked, action.content)
                return move
            self.bad_replies += not move.parsed
            parsed = parsed or move.parsed
            if conversation.corrects:
                asked = state + prompt.correction(move.why)
        return IllegalReply(parsed, "no reply was accepted")

    def _read(self, text: str | IllegalReply) -> Move | IllegalReply:
        move = text if isinstance(text, IllegalReply) else self.match.read(text)
        if not isinstance(move, IllegalReply) and self.match.setup.refuses(move):
            return IllegalReply(True, "the target doesn't fit this skill")
        return move

    def _finish(self, reason: FinishReason) -> Finish:
        setup, damage = self.match.setup, self.match.damage()
        won = win(reason, self.match.game.winner, setup.seat, setup.profile)
        own = {
            "win": won,
            "damage": float(damage),
            "calls": float(self.calls),
            "phases": float(len(self.match.phases)),
            "guesses": float(self.guesses),
            "right_guesses": float(self.right_guesses),
            "bad_replies": float(self.bad_replies),
        }
        asked = f"win against {setup.opponent} from seat {setup.seat}, stage {setup.stage}"
        result = {1.0: "won", 0.5: "drawn"}.get(won, "lost")
        return Finish(
            reason=reason,
            score=score(won, damage / ALL_HP),
            metrics=metrics(self.guessing, self.acting) | own,
            detail={
                **asked_and_answered(asked, "won", f"{result}, {damage} of {ALL_HP} damage dealt"),
                "opponent": setup.opponent,
                "seat": setup.seat,
                "stage": setup.stage,
                "legacy_agent_bugs": setup.legacy_agent_bugs,
                "trajectory": self.match.trajectory(),
                "replay": replay(self.match, reason),
            },
        )
