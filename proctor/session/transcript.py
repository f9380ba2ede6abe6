"""The transcript of a session."""

from proctor.types import Action, History, Message, Observation


class Transcript:
    """The histories of a session's conversations, on the agent's side."""

    def __init__(self) -> None:
        self._histories: dict[str, History] = {}
        self._echoed: dict[tuple[str, str, str], Message] = {}
        """(conversation, id and name of a call) -> the agent's last message with it, where that has an `echo`"""

    def observe(self, observation: Observation) -> History:
        """Add the observation's messages to its conversation, and return the whole history.

        Environments get no `echo`. One that hands out the agent's own calls again, as with `fresh`, gets it put back.
        """
        if observation.fresh:
            self._histories.pop(observation.conversation, None)
        name = observation.conversation
        history = self._histories.get(name) or self._histories.setdefault(name, History())
        if self._echoed:
            history.extend(self._with_echo(observation.conversation, message) for message in observation.messages)
        else:
            history.extend(observation.messages)
        return history

    def answer(self, observation: Observation, action: Action) -> None:
        """Record the action that answered the observation."""
        message = action.message()
        self._histories[observation.conversation].append(message)
        if action.echo or (action.tool_calls and any(call.echo for call in action.tool_calls)):
            self._echoed |= {(observation.conversation, call.id, call.name): message for call in action.tool_calls}

    def _with_echo(self, conversation: str, message: Message) -> Message:
        """The message with what its endpoint demands back of the calls in it whose ids are known."""
        known = [self._echoed.get((conversation, call.id, call.name)) for call in message.tool_calls]
        original = next((each for each in known if each is not None), None)
        if original is None:
            return message
        echoes = {call.id: call.echo for call in original.tool_calls}
        calls = tuple(call.model_copy(update={"echo": echoes.get(call.id, {})}) for call in message.tool_calls)
        return message.model_copy(update={"tool_calls": calls, "echo": original.echo})
