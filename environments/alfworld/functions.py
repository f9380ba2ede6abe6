"""The function of protocol `tools`, with the name and the parameter of AgentBench FC (578c5e9), in our own words."""

from environments.alfworld.reply import Move, NoMove, Profile, cleaned
from proctor.tools import Arguments, Function, Toolset, arguments_schema


def toolset(profile: Profile) -> Toolset[Move | NoMove]:
    """The one function; unless the profile is strict, a call of any name calls it, as published."""

    def read(given: Arguments) -> Move | NoMove:
        written = str(given["action"])
        return Move(action=cleaned(written.strip(), profile), written=written)

    take_action = Function(
        "take_action",
        "Acts in the house, and shows what comes of it.",
        arguments_schema(action={"type": "string", "description": "One of the available actions, as listed."}),
        read,
        write=lambda move: {"action": move.action} if isinstance(move, Move) else None,
    )
    return Toolset((take_action,), any_name=True)


def spelled(move: Move | NoMove) -> str:
    """A move as a reply of protocol `text`."""
    return f"ACTION: {move.action}" if isinstance(move, Move) else ""
