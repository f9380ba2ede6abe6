"""Pure: which client processes play, and which one has a session. `now` is monotonic, in seconds."""

import math
from dataclasses import dataclass, field

from task_server.wire.errors import SessionHeld, SessionTaken
from task_server.wire.messages import Sender

SILENT_S = 10.0
"""Another client gets the sessions of one that a server has not heard for so long."""
PLAYED_ELSEWHERE = (
    "another client plays this run, from a copy of its store or after a take-over; this copy can be reported and "
    "exported, and to play beside the other client is a new run"
)


@dataclass(slots=True)
class Clients:
    """The clients that a server has heard of late."""

    _heard: dict[str, tuple[tuple[str, str], float]] = field(default_factory=dict)
    """client -> the id and name of its run (parts of a plan share an id), and when it was heard last"""

    def hear(self, sender: Sender, now: float) -> None:
        """Note a request. A client that yields, or has a successor, counts as silent."""
        if sender.succeeds:
            self._heard.pop(sender.succeeds, None)
        if sender.yields:
            self._heard.pop(sender.client, None)
        elif sender.client:
            self._heard[sender.client] = ((sender.run, sender.name), now)

    def left_s(self, client: str, now: float) -> float:
        """In how many seconds a client counts as silent unless it is heard before; 0 if it does."""
        return max(0.0, self._heard.get(client, (("", ""), -math.inf))[1] + SILENT_S - now)

    def others(self, sender: Sender, now: float) -> bool:
        """Whether another client of the sender's run is not silent. False for a sender that names no client."""
        playing = (client for client, (run, _) in self._heard.items() if run == sender[:2] and self.left_s(client, now))
        return bool(sender.run and sender.client) and any(client != sender.client for client in playing)

    def forget_silent(self, now: float) -> None:
        """Drop the clients that are silent."""
        self._heard = {client: heard for client, heard in self._heard.items() if self.left_s(client, now)}


@dataclass(frozen=True, slots=True)
class Succession:
    """The clients that have had a session, one after the other; none where its first one did not say which it was."""

    clients: tuple[str, ...] = ()

    def admit(self, client: str, heard: Clients, now: float) -> "Succession":
        """The state once a client uses the session. One that does not say which it is changes nothing.

        Raises SessionTaken for a client that had the session before, SessionHeld until the one that has it is silent.
        """
        if not client or client in self.clients[-1:] or not self.clients:
            return self
        self.check_not_taken(client)
        if left_s := heard.left_s(self.clients[-1], now):
            raise SessionHeld(PLAYED_ELSEWHERE, retry_after_s=left_s)
        return Succession((*self.clients, client))

    def check_not_taken(self, client: str) -> None:
        """Raises SessionTaken for a client that had the session before."""
        if client in self.clients[:-1]:
            raise SessionTaken(PLAYED_ELSEWHERE)
