"""The reference: a task's own solution."""

import base64
import gzip
import shlex
from collections.abc import Sequence

from environments.operating_system.policies import bash, finish
from proctor.environment import Policy
from proctor.types import Action, Message
from proctor_bridges.worlds.harbor.tasks import HarborTask, packed

_CHUNK = 48_000
"""Characters in one action, whose text is limited."""
_PACKED, _STATUS = "/tmp/.solution.b64", "/logs/agent/oracle.status"
_ENDED = "solve.sh has ended with status"
_WAIT = (
    f"for i in $(seq 75); do [ -s {_STATUS} ] && break; sleep 0.2; done; "
    f'[ ! -s {_STATUS} ] || echo "{_ENDED} $(cat {_STATUS})"'
)


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
