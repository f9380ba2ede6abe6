"""What shows at once of a plan's endpoints and servers: their keys and variables, and whether anything listens."""

import asyncio
import shutil
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from eval_client.cli.doctor import machine, tasks
from eval_client.cli.doctor.finding import Finding, fail, ok, skip, warn
from eval_client.cli.usage import in_thread
from eval_client.endpoints.chat_configs import chat_config, task_models
from eval_client.plan.plan import Plan
from proctor.config.secrets import secret_text
from proctor.config.tokens import AccessTokens
from proctor.http import is_loopback
from proctor.llm.config import ChatConfig

UNSCORED = "no trial that needs this model could be scored"
UNSTARTED = "no session can be started"


async def quick_problems(plan: Plan, output: Path, store: str | None) -> list[Finding]:
    """The problems of a plan that show at once; `output` is the folder of the runs, `store` the URL of a server."""
    own = plan.definitions() if plan.controller == "local" else []
    engines = await asyncio.gather(*map(tasks.engine_problem, own))
    found = [each for each in engines if each is not None]
    for definition in own:
        if None in plan.playing(definition.name).values():  # a model plays it
            found += tasks.model_findings(definition.build(), definition.name, plan)
    found += [*key_findings(plan), *await _unlistened(plan)]
    found += await in_thread(machine.folder, output, in_sqlite=store is None)
    return [each for each in found if each.is_problem]


async def _unlistened(plan: Plan) -> list[Finding]:
    """The servers of this machine that nothing listens for. Others may be slow to reach, so they are not tried."""
    agents: dict[str, list[str]] = {}
    for agent in plan.agents:
        if agent.builtin is None or agent.endpoint is not None:
            try:
                agents.setdefault(chat_config(plan, agent, None).endpoint(), []).append(agent.name)
            except ValueError as error:
                return [wrong_variable(f"agent {agent.name}", error)]
    found = [
        unreachable_agent(f"{'agents' if len(names) > 1 else 'agent'} {', '.join(names)}: {trouble}")
        for url, names in agents.items()
        if (trouble := await _not_listening(url)) is not None
    ]
    if plan.controller != "local" and (trouble := await _not_listening(plan.controller)) is not None:
        found.append(unreachable_controller(trouble, plan.controller))
    return found


async def _not_listening(url: str) -> str | None:
    """Why no connection to a server on this machine can be made; None for other machines' servers."""
    parts = urlsplit(url)
    if parts.hostname is None or not is_loopback(parts.hostname):
        return None
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        async with asyncio.timeout(tasks.REACH_S):
            _, writer = await asyncio.open_connection(parts.hostname, port)
    except (OSError, TimeoutError):
        return f"nothing listens at {parts.scheme}://{parts.netloc} yet"
    writer.close()
    return None


def unreachable_agent(what: str) -> Finding:
    """The finding on an endpoint that can't be connected to."""
    return fail("agent-unreachable", what, UNSCORED, "start the endpoint, or correct `base_url`")


def wrong_url(what: str, fix: str = "correct `base_url`: up to and with /v1, without /chat/completions") -> Finding:
    """The finding on an endpoint whose URL can't be right."""
    return fail("agent-url", what, UNSCORED, fix)


def wrong_variable(name: str, error: ValueError) -> Finding:
    """The finding on a model whose URL is in a variable that holds none."""
    return wrong_url(f"{name}: {error}", f"correct the variable {str(error).partition(':')[0]}")


def broken_key(what: str) -> Finding:
    """The finding on a key that can't be sent, or is not where the plan says."""
    fix = "copy the key again, or correct what names it: its variable, file or command"
    return fail("key-broken", what, "no request can be sent with this key", fix)


def key_findings(plan: Plan) -> list[Finding]:
    """A finding for each variable with a key or a token that the plan's servers may ask for."""
    variables: dict[str, bool] = {} if plan.controller == "local" else {plan.token_env: True}
    lacking = dict[str, None]()
    asking = [each for each in plan.agents if not each.is_command and (each.builtin is None or each.endpoint)]
    models = {f"agent {agent.name}": chat_config(plan, agent, None) for agent in asking} | task_models(plan)
    for name, config in models.items():
        optional = config.base_url is not None and is_loopback(urlsplit(config.endpoint()).hostname)
        if config.api_key_file is None and not config.api_key_command:
            variables[config.api_key_env] = variables.get(config.api_key_env, True) and optional
        lacking |= {f"{name}: {each}": None for each in _lacks(config)}
    found = [_key(variable, optional=optional) for variable, optional in variables.items()]
    return [*found, *map(broken_key, lacking)]


def _lacks(config: ChatConfig) -> Sequence[str]:
    """What an endpoint's key file, key command, headers, query or proxy name, and is not there."""
    if config.api_key_file is not None and not config.api_key_file.is_file():
        return [f"there is no file {config.api_key_file}; correct `api_key_file`"]
    if config.api_key_command and shutil.which(config.api_key_command[0]) is None:
        return [f"there is no program {config.api_key_command[0]!r} on this machine; correct `api_key_command`"]
    unset = [name for name in config.named_variables() if not secret_text(name)]
    return [f"the variable {unset[0]} is unset; export {unset[0]}=..., or a line in .env"] if unset else []


def _key(variable: str, *, optional: bool) -> Finding:
    """Whether a variable holds a key that can be sent; `optional` where its servers may not need one."""
    try:
        tokens = AccessTokens.of(variable)
    except ValueError as error:
        return broken_key(str(error))
    if tokens:
        return ok("key", f"{variable} is set")
    if optional:
        return skip("key", f"{variable} is unset; its servers may not need it")
    why, fix = "most endpoints refuse requests without a key", f"export {variable}=..., or a line in .env"
    return warn("key-unset", f"{variable} is unset", why, fix)


def unreachable_controller(what: str, url: str) -> Finding:
    """The finding on a controller that can't be connected to."""
    fix = f"proctor controller, or correct `controller` ({url})"
    return fail("controller-unreachable", what, UNSTARTED, fix)
