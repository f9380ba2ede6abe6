"""Where the published code and the text of the paper disagree about the rules."""

from typing import Literal, NamedTuple

from environments.card_game.rules.fish import SPECIES, Fish

Profile = Literal["compat", "strict", "paper"]


class RuleVariants(NamedTuple):
    """The rules that differ; everything else is the engine's."""

    equal_attacks: bool
    """Every fish starts with an attack of 200."""
    own_part: float
    """What a deflecting fish keeps of the damage; its mates share the rest."""
    mates_part: float
    spray_part: float | None
    """AOE of a spray as a part of its attack; None for 70, whatever its attack."""
    explodes_alive: bool
    """A hammerhead explodes when hit and not killed, instead of when killed."""
    counted: bool
    """The side with more living fish at the end wins, and equal numbers are a draw."""

    def start_attack(self, id: int) -> int:
        return 200 if self.equal_attacks else SPECIES[id].attack

    def spray_damage(self, fish: Fish) -> int:
        return 70 if self.spray_part is None else int(fish.attack * self.spray_part)


CODE = RuleVariants(
    equal_attacks=False, own_part=0.7, mates_part=0.3, spray_part=None, explodes_alive=False, counted=False
)
"""AgentBench v0.2."""
PAPER = RuleVariants(
    equal_attacks=True, own_part=0.3, mates_part=0.7, spray_part=0.35, explodes_alive=True, counted=True
)
"""arXiv 2308.03688, Appendix E."""
RULES: dict[Profile, RuleVariants] = {"compat": CODE, "strict": CODE, "paper": PAPER}
