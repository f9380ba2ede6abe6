"""The kinds of findings; docs/reference/doctor.md lists them too."""

from typing import NamedTuple

from proctor.llm.refusals import TOOLS_FIX


class FindingKind(NamedTuple):
    """Why a problem matters and how to fix it. Empty for checks that can only pass or be skipped."""

    why: str = ""
    fix: str = ""


_AGENT = "no trial of this agent could be scored"

KINDS: dict[str, FindingKind] = {
    # this machine
    "python": FindingKind(),
    "package-missing": FindingKind(
        "Proctor itself needs this package",
        "pip install proctor, into the Python environment of the command `proctor`",
    ),
    "extra": FindingKind(),
    "extra-missing": FindingKind(
        "this machine can't play tasks of this environment", "pip install the package that is named"
    ),
    "docker": FindingKind(),
    "docker-down": FindingKind(
        "the sandboxes of environment `os` are containers",
        "start the engine (systemctl start docker), or name another: export DOCKER_HOST=unix:///path/to/docker.sock",
    ),
    "docker-image": FindingKind(),
    "docker-image-missing": FindingKind(
        "sandboxes start from this image", "docker build -t proctor-os:latest docker/os, or name yours: `image`"
    ),
    "docker-disk": FindingKind(),
    "docker-disk-short": FindingKind("sandboxes write to it; a full disk stops the engine", "docker system prune"),
    "docker-quota": FindingKind(),
    "docker-disk-unbounded": FindingKind(
        "one agent can fill the engine's disk, which stops all of its sandboxes",
        "set the task's parameters to {disk: tmpfs}, or move Docker's data root to xfs with pquota, btrfs or zfs",
    ),
    "docker-pools": FindingKind(),
    "docker-pools-short": FindingKind(
        "a network without addresses can't be created: `docker compose up` and stacks fail",
        "docker network prune, or add to `default-address-pools` in the engine's daemon.json",
    ),
    "mariadb": FindingKind(),
    "mariadb-missing": FindingKind(
        "environment `db` starts a private MariaDB server by default",
        "apt-get install mariadb-server, or set the task's parameters to {engine: sqlite}",
    ),
    "postgresql": FindingKind(),
    "virtuoso": FindingKind(),
    "namespaces": FindingKind(),
    "namespaces-refused": FindingKind(
        "the light engine of environment `os`, which the demo uses without Docker, needs namespaces",
        "allow user namespaces (sysctl kernel.unprivileged_userns_clone=1), or use Docker",
    ),
    "runs-folder": FindingKind(),
    "runs-folder-unwritable": FindingKind("runs are stored in this folder", "choose another folder: -o FOLDER"),
    "disk": FindingKind(),
    "disk-short": FindingKind(
        "a run waits while the disk is full", "free some space, or choose another folder: -o FOLDER"
    ),
    "inodes": FindingKind(),
    "inodes-short": FindingKind("every new file needs an inode", "remove files, or choose another folder: -o FOLDER"),
    "memory": FindingKind(),
    "memory-short": FindingKind(
        "the system kills processes when memory runs out", "close other programs, or lower capacities"
    ),
    "descriptors": FindingKind(),
    "descriptors-few": FindingKind(
        "each running trial opens files and connections", "ulimit -n 8192, in the shell that starts the run"
    ),
    # the store
    "store": FindingKind(),
    "store-unreachable": FindingKind("no result can be recorded", "check the URL, and that the server runs"),
    "store-rights": FindingKind(
        "a run creates tables and writes rows",
        "grant the account CREATE, SELECT, INSERT, UPDATE and DELETE in the database",
    ),
    "store-schema": FindingKind(
        "this version can't read or resume its runs",
        "use the version of Proctor that wrote them, or another database",
    ),
    # the plan
    "plan": FindingKind(),
    "plan-broken": FindingKind("the plan can't be run", "correct the line that is named"),
    "key": FindingKind(),
    "key-unset": FindingKind("most endpoints refuse requests without a key", "set the variable, or add it to .env"),
    "key-broken": FindingKind("no request can be sent with this key", "copy the key again"),
    # agents
    "agent": FindingKind(),
    "agent-key": FindingKind(_AGENT, "set the variable to a key of this endpoint that may use the model"),
    "agent-model": FindingKind(_AGENT, "correct `model`"),
    "agent-url": FindingKind(_AGENT, "correct `base_url`: up to and with /v1, without /chat/completions"),
    "agent-command": FindingKind(_AGENT, "install it, or write its absolute path"),
    "agent-unreachable": FindingKind(_AGENT, "start the endpoint, or correct `base_url`"),
    "agent-silent": FindingKind(
        "trials wait for each answer, up to the endpoint's `deadline_s`",
        "check the endpoint; if it is only slow, run the doctor again with --patience 60",
    ),
    "agent-quota": FindingKind(_AGENT, "add credit to the account, or use another key"),
    "agent-throttled": FindingKind("the endpoint is busy; a run retries and is slow", "lower `concurrency`, or wait"),
    "agent-tls": FindingKind(_AGENT, "correct http or https in `base_url`, or the endpoint's certificate"),
    "agent-failing": FindingKind("trials are retried and may stay unscored", "read the endpoint's own log"),
    "agent-refuses": FindingKind("every request of a run would be refused", "correct `sampling` or `model`"),
    "agent-reply": FindingKind("its replies can't be read", "correct `base_url`: something else answers there"),
    "agent-tools": FindingKind(),
    "agent-tools-refused": FindingKind("its tasks with `protocol: tools` can't be played", TOOLS_FIX),
    "agent-tools-unused": FindingKind(
        "a session without a call ends as invalid_format, with score 0",
        "name a model that calls functions, add `tool_choice: required` to `sampling`, or play `protocol: text`",
    ),
    "agent-tools-history": FindingKind(
        "its trials fail at their second turn",
        "set the agent's `reasoning` or `system_role` to what the endpoint demands (docs/how-to/agents.md)",
    ),
    # task servers
    "controller": FindingKind(),
    "controller-unreachable": FindingKind("no session can be started", "start the controller, or correct `controller`"),
    "controller-tls": FindingKind(
        "no request is sent to it", "name its authority (`tls.ca`), or correct http or https"
    ),
    "controller-other": FindingKind("no session can be started", "correct `controller`: something else answers there"),
    "controller-token": FindingKind(
        "the controller refuses every request", "set the variable to the controller's token"
    ),
    "controller-not-ready": FindingKind(
        "sessions are refused until it is ready", "wait; the finding names the controller's reason"
    ),
    "task": FindingKind(),
    "task-unknown": FindingKind(
        "its trials would stay unscored", "proctor worker --tasks FILE --controller URL, with this task in FILE"
    ),
    "task-waiting": FindingKind("none of its sessions can start", "correct what the worker reports"),
    "task-workers-differ": FindingKind(
        "a new run can't choose between them; a run in progress uses the workers whose task is as at its start",
        "start the workers that are named first with the data, parameters and version of the others",
    ),
    "task-no-capacity": FindingKind(
        "none of its sessions can start", "give the task a `capacity` in its worker's task file"
    ),
    "task-full": FindingKind("its trials wait until sessions of other runs end", "start another worker, or wait"),
    "task-untrusted": FindingKind(
        "a model could break out of its sandbox",
        "use the environment's full engine (for os: parameters: {engine: docker})",
    ),
    "task-empty": FindingKind("the task has no trials", "correct `data`"),
    "worker": FindingKind(),
    "worker-relayed": FindingKind(
        "its turns go through the controller, one more hop each",
        "start it with --advertise and a URL that this machine reaches",
    ),
    "version": FindingKind(),
    "version-differs": FindingKind(
        "prompts and scores may differ, and one process may refuse the messages of another",
        "install the same version everywhere: pip install proctor==VERSION, and restart the process",
    ),
    "clock": FindingKind(),
    "clock-skew": FindingKind(
        "times in logs and traces disagree, and certificates may seem invalid; leases are not affected",
        "synchronise the clocks: timedatectl set-ntp true",
    ),
    # the environments and data of tasks
    "environment": FindingKind(),
    "environment-missing": FindingKind("the task can't be played", "pip install the package that is named"),
    "environment-fault": FindingKind("none of its sessions could start", "correct the cause that is named"),
    "environment-late": FindingKind(
        "the start of a run waits for it, up to limits.patience_s", "run the doctor again with --patience 60"
    ),
    "data": FindingKind(),
    "data-broken": FindingKind("the task can't be played", "correct `data`, or the file at the place that is named"),
    "data-differs": FindingKind(
        "built-in agents would play other samples than the servers", "give this plan and the workers the same data"
    ),
    "policy-missing": FindingKind(
        "the agent can't play the task, so the run is refused",
        "list the other pairs under `assignments`, or add the policy's method to the environment",
    ),
    "comparable": FindingKind(),
    "not-comparable": FindingKind(
        "its scores can't be compared with published ones", "see docs/reference/environments/"
    ),
    # the run to be resumed
    "run": FindingKind(),
    "run-plan-changed": FindingKind("the run would not be resumed", "undo the change, or start a new run"),
    "run-data-changed": FindingKind(
        "the run would not be resumed", "restore data, prompts and settings, or start a new run"
    ),
    "run-damaged": FindingKind(
        "lost turns would be paid for again, and lost results would be missing in the report",
        "restore its store from a copy, or start a new run; `proctor resume` prints whether the run can be resumed",
    ),
    "run-unreadable": FindingKind("the run can't be resumed", "name another run, or start a new one"),
    # the doctor itself
    "check-failed": FindingKind("the result of this check is unknown", "please report this, with the line above"),
    "check-late": FindingKind("the result of this check is unknown", "run the doctor again with --patience 60"),
}
