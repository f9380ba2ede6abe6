"""The engine: one game under way, with TextWorld's answers to commands."""

from environments.alfworld.engine.domain import Operator
from environments.alfworld.engine.facts import Arguments
from environments.alfworld.engine.game import Binding, ReadyGame
from environments.alfworld.engine.template import Symbol

REFUSED = "Nothing happens."


class GameWorld:
    """The state of one game. The ReadyGame never changes: any number of worlds may share it, also across threads."""

    def __init__(self, game: ReadyGame) -> None:
        self._game = game
        self._facts = game.start.copy()
        self._offers: dict[str, tuple[Operator, Binding]] | None = None
        self.intro = game.render((Symbol("intro"),), {}, self._facts)
        """The text before the first command: welcome, room and task, a paragraph each."""

    def admissible(self) -> list[str]:
        """All commands that can be carried out now, sorted by code points."""
        return sorted(self._offered())

    def step(self, command: str) -> str:
        """Carries out a command and returns its feedback; one that is not admissible is refused and changes nothing."""
        offer = self._offered().get(command.strip())
        if offer is None:
            return REFUSED
        operator, binding = offer
        self._carry_out(operator, binding)
        return self._game.render(self._game.grammar.commands[operator.name].feedback, binding, self._facts)

    @property
    def won(self) -> bool:
        """Whether the goal holds now."""
        return any(True for _ in self._game.goal.ask(self._facts))

    def _offered(self) -> dict[str, tuple[Operator, Binding]]:
        if self._offers is None:
            self._offers = {}
            for operator, query in self._game.operators:
                for values in sorted(set(query.ask(self._facts))):
                    binding = dict(zip(operator.parameters, values, strict=True))
                    if self._changes_something(operator, binding):
                        command = self._game.command(operator, binding, self._facts)
                        self._offers.setdefault(command, (operator, binding))
        return self._offers

    def _changes_something(self, operator: Operator, binding: Binding) -> bool:
        """False where an action only deletes facts and adds the same ones again: going to where the agent is."""
        if operator.always_changes:
            return True
        (first,) = operator.effects
        adds = {(each.predicate, _values(each.arguments, binding)) for each in first.adds}
        deletes = {(each.predicate, _values(each.arguments, binding)) for each in first.deletes}
        return adds != deletes or not all(self._facts.holds(*each) for each in adds)

    def _carry_out(self, operator: Operator, binding: Binding) -> None:
        given = [binding[name] for name in operator.parameters]
        effects = [effect for effect in operator.effects if self._game.applies(effect, operator, self._facts, given)]
        for effect in effects:
            for atom in effect.deletes:
                self._facts.delete(atom.predicate, _values(atom.arguments, binding))
        for effect in effects:
            for atom in effect.adds:
                self._facts.add(atom.predicate, _values(atom.arguments, binding))
        self._offers = None


def _values(arguments: Arguments, binding: Binding) -> Arguments:
    return tuple([binding.get(argument, argument) for argument in arguments])
