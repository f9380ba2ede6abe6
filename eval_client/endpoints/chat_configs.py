"""The chat settings of a run's agents, from its plan."""

import contextlib
import os

from eval_client.plan.entries import AgentEntry, Endpoint
from eval_client.plan.plan import Plan
from proctor.config.tokens import AccessTokens
from proctor.config.yaml import FileError
from proctor.llm.config import ChatConfig, EndpointFields, RequestForm
from proctor.llm.endpoint import connection
from proctor.llm.servers import replicas_of_file

LOCAL_TOKEN_ENV = "PROCTOR_LOCAL_TOKEN"
"""Environment variable with the token of the servers that runs of this process start."""


def chat_config(plan: Plan, agent: AgentEntry, builtin: str | None) -> ChatConfig:
    """The chat settings of an agent; `builtin` is the base URL of the run's own agent server."""
    own = agent.builtin is not None and agent.endpoint is None
    endpoint = plan.endpoint_of(agent)
    served = {name: getattr(endpoint, name) for name in EndpointFields.model_fields}
    return ChatConfig(
        model=agent.model or agent.name,
        metadata=agent.sends_metadata,
        **{name: getattr(agent, name) for name in RequestForm.model_fields},
        **served | ({"base_url": builtin, "api_key_env": LOCAL_TOKEN_ENV} if own else {}),
    )


def task_models(plan: Plan) -> dict[str, ChatConfig]:
    """The settings of the models that tasks played here use: judges, hosts, users, drivers; named `task NAME: ...`."""
    found: dict[str, ChatConfig] = {}
    for definition in plan.played_here():
        with contextlib.suppress(FileError):  # told where the task is read
            for field, value in definition.build():
                several = value if isinstance(value, tuple) else (value,)
                models = [each for each in several if isinstance(each, ChatConfig)]
                found |= {f"task {definition.name}: {field} {model.model}": model for model in models}
    return found


def several_servers(plan: Plan) -> dict[str, ChatConfig]:
    """The settings of agents, by name, and of tasks' models that have several servers."""
    agents = {agent.name: chat_config(plan, agent, None) for agent in plan.agents if not agent.is_command}
    return {name: config for name, config in (agents | task_models(plan)).items() if config.has_replicas}


def replica_configs(config: ChatConfig) -> dict[str, ChatConfig]:
    """URL -> the chat settings there, of a model that may have several servers, as far as they are known."""
    urls = [replica.base_url for replica in config.replicas()]
    if config.replicas_file is not None:
        urls = replicas_of_file(config.replicas_file)[0]
    return {url: config.at(url) for url in urls}


def check_settings(plan: Plan) -> None:
    """Raises ValueError, which names the variable, if a key, a base URL or the controller's token can't be used."""
    AccessTokens.of(plan.token_env)
    for agent in plan.agents:
        if not agent.is_command and (agent.builtin is None or agent.endpoint is not None):
            config = chat_config(plan, agent, None)
            connection(config)


def address_of(config: ChatConfig) -> tuple[str, str]:
    """(base URL, key, or where the key comes from if it changes)"""
    reached = connection(config)
    return reached.url, reached.keys.identity


def endpoints_of(plan: Plan) -> list[Endpoint]:
    return list({endpoint.name: endpoint for endpoint in map(plan.endpoint_of, plan.agents)}.values())


def local_token() -> str:
    """The token of the servers that runs of this process start; kept in LOCAL_TOKEN_ENV for them and our requests."""
    token = os.environ[LOCAL_TOKEN_ENV] = os.environ.get(LOCAL_TOKEN_ENV) or os.urandom(16).hex()
    return token
