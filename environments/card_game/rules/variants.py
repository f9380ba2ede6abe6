"""The rules in which the published code and the text of the paper differ."""

from typing import Literal, NamedTuple

from environments.card_game.rules.fish import SPECIES, Fish

Profile = Literal["compat", "strict", "paper"]


class RuleVariants(NamedTuple):
    """A choice of the rules that differ; all others are in the engine."""

    equal_attacks: bool
    """True: every fish starts with an attack of 200."""
    own_part: float
    """The share of the damage that a deflecting fish keeps."""
    mates_part: float
    """The share of the damage that its living mates divide among them."""
    spray_part: float | None
    """The damage of a spray's AOE as a share of its attack; None for a constant 70."""
    explodes_alive: bool
    """True: a hammerhead explodes when it is hit and survives; False: when it is killed."""
    counted: bool
    """True: the side with more living fish at the end wins, and equal numbers are a draw."""

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
