"""The chat settings of a run's agents, from its plan."""

import os

from eval_client.plan.entries import AgentEntry, Endpoint
from eval_client.plan.plan import Plan
from proctor.config.tokens import AccessTokens
from proctor.connection.fields import ConnectionFields
from proctor.llm.config import ChatConfig, EndpointForm, RequestForm, RequestLimits
from proctor.llm.endpoint import connection
from proctor.llm.servers import replicas_of_file

LOCAL_TOKEN_ENV = "PROCTOR_LOCAL_TOKEN"
"""Environment variable with the token of the servers that runs of this process start."""


def chat_config(plan: Plan, agent: AgentEntry, builtin: str | None, replica: str | None = None) -> ChatConfig:
    """The chat settings of an agent; `builtin` is the base URL of the run's own agent server.

    `replica` is the URL of one of several servers; None: the first one that the plan lists.
    """
    endpoint = plan.endpoint_of(agent)
    listed = endpoint.replicas()
    url = endpoint.base_url if not isinstance(endpoint.base_url, tuple) else listed[0].base_url
    own = agent.builtin is not None and agent.endpoint is None
    return ChatConfig(
        base_url=builtin if own else replica or url,
        model=agent.model or agent.name,
        api_key_env=LOCAL_TOKEN_ENV if own else endpoint.api_key_env,
        metadata=agent.sends_metadata,
        **{name: getattr(agent, name) for name in RequestForm.model_fields},
        **{
            name: getattr(endpoint, name)
            for part in (RequestLimits, EndpointForm, ConnectionFields)
            for name in part.model_fields
        },
    )


def replica_configs(plan: Plan, agent: AgentEntry) -> dict[str, ChatConfig]:
    """URL -> the chat settings there, of an agent whose endpoint may have several servers, as far as they are known."""
    endpoint = plan.endpoint_of(agent)
    urls = [replica.base_url for replica in endpoint.replicas()]
    if endpoint.replicas_file is not None:
        urls = replicas_of_file(endpoint.replicas_file)[0]
    return {url: chat_config(plan, agent, None, url) for url in urls}


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
