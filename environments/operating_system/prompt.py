"""The messages before the agent's first turn.

The parts and their order follow AgentBench, arXiv 2308.03688, appendix B.3, and so do the three output forms; the
sentences are our own.
"""

import ast

from pydantic import TypeAdapter

from environments.operating_system.observation import body
from proctor.published import Opening, Source, Texts, beginning, injected, injections, value_of
from proctor.types import Message

_INSTRUCTION = """\
You act as a person at a computer, and I am its operating system, a Linux (Ubuntu). You are to carry out the operation \
I ask for, or to answer the question I ask about the system. In each turn first think about what to do, then take \
exactly one of three actions: "bash", "finish" or "answer".

1. To run bash code, take the action bash. Print it like this:

Think: what you are thinking.

Act: bash

```bash
# the bash code to run
```

2. When the operation is done, take the action finish. Print it like this:

Think: what you are thinking.

Act: finish

3. When you know the answer to the question, take the action answer. Print it like this:

Think: what you are thinking.

Act: answer(the answer, inside this pair of parentheses)

An output that is too long is truncated: what you then see is incomplete, and you have to cope with that yourself. \
Note that your bash code must never wait for input. Remember to take exactly one of the three actions in each turn.

Here is my first problem:

How many files are in the directory "/etc"?"""

_LISTING = (
    "adduser.conf alternatives apparmor.d apt bash.bashrc bindresvport.blacklist binfmt.d ca-certificates "
    "ca-certificates.conf cron.d cron.daily cron.hourly cron.monthly cron.weekly crontab dbus-1 "
    "debconf.conf debian_version default deluser.conf depmod.d dhcp dpkg e2scrub.conf emacs environment "
    "ethertypes fonts fstab gai.conf group group- gshadow gshadow- gss host.conf hostname hosts "
    "hosts.allow hosts.deny init.d inputrc iproute2 issue issue.net kernel ld.so.cache ld.so.conf "
    "ld.so.conf.d ldap legal libaudit.conf libnl-3 locale.alias locale.gen localtime logcheck login.defs "
    "logrotate.d lsb-release machine-id magic magic.mime mailcap mime.types mke2fs.conf modprobe.d "
    "modules modules-load.d mtab nanorc netconfig network networkd-dispatcher networks nsswitch.conf opt "
    "os-release pam.conf pam.d passwd passwd- perl profile profile.d protocols python3 rc0.d rc1.d "
    "resolv.conf rmt rpc security selinux services shadow shells skel ssh ssl subgid subuid sudoers "
    "sysctl.conf sysctl.d systemd terminfo timezone tmpfiles.d udev "
)

EXAMPLE: tuple[Message, ...] = (
    Message(role="user", content=_INSTRUCTION),
    Message(
        role="assistant",
        content="Think: To count the files I first look at what is there.\n\nAct: bash\n\n```bash\nls /etc\n```",
    ),
    Message(role="user", content=body("\n".join(_LISTING.split()))),
    Message(
        role="assistant",
        content="Think: The listing is truncated, so I must not count it by hand; a pipe can count.\n\nAct: bash\n\n"
        "```bash\nls -1 /etc | wc -l\n```",
    ),
    Message(role="user", content=body("220")),
    Message(role="assistant", content="Think: The count is 220.\n\nAct: answer(220)"),
)
"""The instruction and the worked example; they do not count as rounds."""


_TOOLS_INSTRUCTION = """\
You act as a person at a computer, and I am its operating system, a Linux (Ubuntu).
You are to carry out the operation I ask for, or to answer the question I ask about the system.
In each turn first think about what to do, then call exactly one of the functions.
An output that is too long is truncated: what you then see is incomplete, and you have to cope with that yourself.
Note that your bash code must never wait for input. Remember to call one function in each turn; a turn without a call \
is lost.
When the operation is done, or information is missing to complete it, call "finish_action": you get no more information.
When you know the answer to the question, call "answer_action" instead of writing the answer in your reply.
An answer has to be exact, for example a single number, and not a sentence.
Always act by a function."""

OWN = Opening(EXAMPLE, "Now a new problem begins, in a new OS:\n\n")
TOOLS = Opening((Message(role="system", content=_TOOLS_INSTRUCTION),), "My problem is:\n\n")
"""The opening in protocol `tools`, its parts in the order of AgentBench FC."""


def opening(description: str, prompt: Opening = OWN) -> tuple[Message, ...]:
    """All messages before the first turn."""
    return (*prompt.messages, Message(role="user", content=f"{prompt.lead}{description}"))


_MESSAGES = TypeAdapter(list[dict[str, str]])


def _in_python(tree: ast.Module) -> Texts:
    """The instruction followed by the example's question, the example, and the lead-in to the task; empty if absent."""
    try:
        question, *example = _MESSAGES.validate_python(value_of(tree, "ONE_SHOT"))
    except ValueError:
        return []
    instruction = next(iter(injected(tree)), {})
    added = (node.value for node in ast.walk(tree) if isinstance(node, ast.AugAssign))
    bridge = next(filter(None, map(beginning, added)), "")
    contents = (message["content"] for message in injections(tree) if "content" in message)
    lead = next(filter(None, map(beginning, contents)), "")
    first = {**instruction, "content": instruction.get("content", "") + bridge + question.get("content", "")}
    return [first, *example, {"role": "user", "content": lead}]


PROMPT = Source(
    file="AgentBench v0.2's src/server/tasks/os_interaction/task.py",
    fingerprints=frozenset(("c05c9c9db4d2d0fa167bee2a3093a91d", "cd721e37d330989c0657d2505f3ac6a2")),
    in_python=_in_python,
    has_lead=True,
)
