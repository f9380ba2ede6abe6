"""The engine on the rules that ship: every command, every text, and the points that are easy to miss."""

import random
from collections import Counter
from collections.abc import Sequence

from environments.alfworld.dataset import own_games
from environments.alfworld.engine.game import ReadyGame
from environments.alfworld.engine.grammar import Format
from environments.alfworld.engine.world import REFUSED, GameWorld
from environments.alfworld.texts import own_domain, own_grammar

OBJECTS = """
agent1 - agent
loc_bar_0 loc_bar_1 loc_bar_2 loc_bar_3 loc_bar_4 loc_bar_5 loc_bar_6 - location
cabinet_bar_1 countertop_bar_1 countertop_bar_2 fridge_bar_1 microwave_bar_1 sink_bar_1_bar_sinkbasin desk_bar_1
- receptacle
apple_bar_1 apple_bar_2 knife_bar_1 mug_bar_1 spoon_bar_1 desklamp_bar_1 bread_bar_1 tomato_bar_1 curtains - object
cabinettype countertoptype fridgetype microwavetype sinkbasintype desktype - rtype
appletype knifetype mugtype spoontype desklamptype breadtype tomatotype - otype
"""
FACTS = """
(atLocation agent1 loc_bar_0)
(receptacleAtLocation cabinet_bar_1 loc_bar_1) (receptacleType cabinet_bar_1 cabinettype) (openable cabinet_bar_1)
(receptacleAtLocation countertop_bar_1 loc_bar_2) (receptacleType countertop_bar_1 countertoptype)
(receptacleAtLocation countertop_bar_2 loc_bar_2) (receptacleType countertop_bar_2 countertoptype)
(receptacleAtLocation fridge_bar_1 loc_bar_3) (receptacleType fridge_bar_1 fridgetype) (openable fridge_bar_1)
(receptacleAtLocation microwave_bar_1 loc_bar_4) (receptacleType microwave_bar_1 microwavetype)
(openable microwave_bar_1)
(receptacleAtLocation sink_bar_1_bar_sinkbasin loc_bar_5) (receptacleType sink_bar_1_bar_sinkbasin sinkbasintype)
(receptacleAtLocation desk_bar_1 loc_bar_6) (receptacleType desk_bar_1 desktype)
(objectType apple_bar_1 appletype) (objectAtLocation apple_bar_1 loc_bar_2) (inReceptacle apple_bar_1 countertop_bar_1)
(pickupable apple_bar_1) (cleanable apple_bar_1) (heatable apple_bar_1) (coolable apple_bar_1) (sliceable apple_bar_1)
(objectType apple_bar_2 appletype) (objectAtLocation apple_bar_2 loc_bar_1) (inReceptacle apple_bar_2 cabinet_bar_1)
(pickupable apple_bar_2) (sliceable apple_bar_2)
(objectType knife_bar_1 knifetype) (objectAtLocation knife_bar_1 loc_bar_2) (inReceptacle knife_bar_1 countertop_bar_2)
(pickupable knife_bar_1)
(objectType mug_bar_1 mugtype) (objectAtLocation mug_bar_1 loc_bar_2) (inReceptacle mug_bar_1 countertop_bar_1)
(pickupable mug_bar_1) (isReceptacleObject mug_bar_1) (inReceptacleObject spoon_bar_1 mug_bar_1)
(objectType spoon_bar_1 spoontype)
(objectType tomato_bar_1 tomatotype) (objectAtLocation tomato_bar_1 loc_bar_2) (pickupable tomato_bar_1)
(inReceptacle tomato_bar_1 countertop_bar_1) (inReceptacle tomato_bar_1 countertop_bar_2)
(objectType desklamp_bar_1 desklamptype) (toggleable desklamp_bar_1) (inReceptacle desklamp_bar_1 desk_bar_1)
(objectAtLocation desklamp_bar_1 loc_bar_6)
(canContain countertoptype appletype) (canContain cabinettype appletype) (canContain countertoptype tomatotype)
(canContain desktype appletype)
"""
GOAL = """
(exists (?r - receptacle) (exists (?o - object) (and
    (receptacleType ?r cabinettype) (objectType ?o appletype) (isClean ?o) (inReceptacle ?o ?r)
)))
"""
# Identifiers are numbered from behind: countertop_bar_1 is countertop 2, apple_bar_1 is apple 2.


def world(facts: str = "", format: Format = "put", goal: str = GOAL) -> GameWorld:
    problem = f"(define (problem p) (:objects {OBJECTS}) (:init {FACTS} {facts}) (:goal {goal}))"
    return GameWorld(ReadyGame(own_domain(format), own_grammar(format).replace("@TASK@", "test."), problem))


def walked(commands: Sequence[str], format: Format = "put", facts: str = "", goal: str = GOAL) -> dict[str, object]:
    """What the last four of some commands say, what can be done after them, and which of them won; for tables."""
    begun = world(facts, format, goal)
    says, won = [] if commands else [begun.intro], []
    for command in commands:
        says.append(begun.step(command))
        won.append(begun.won)
    return {"says": says[-4:], "offers": begun.admissible(), "won": won.index(True) if True in won else None}


APPLE = ("go to countertop 1", "take apple 2 from countertop 2")


def test_what_was_opened_and_closed_is_a_negative_fact_that_a_condition_can_ask_for() -> None:
    grammar = own_grammar("put").replace('feedback :: "#contents#"', 'feedback :: "#closed_again#"')
    rule = '"closed_again": [{"condition": "not_opened(r:receptacle)", "rhs": "again"}, {"rhs": "never"}],\n"task"'
    problem = f"(define (problem p) (:objects {OBJECTS}) (:init {FACTS}) (:goal {GOAL}))"
    asked = GameWorld(ReadyGame(own_domain("put"), grammar.replace('"task"', rule, 1), problem))
    asked.step("go to cabinet 1")
    assert asked.step("examine cabinet 1") == "never"
    asked.step("open cabinet 1")
    assert asked.step("examine cabinet 1") == "never"
    asked.step("close cabinet 1")
    assert asked.step("examine cabinet 1") == "again"


def test_worlds_of_one_game_do_not_disturb_each_other() -> None:
    problem = f"(define (problem p) (:objects {OBJECTS}) (:init {FACTS}) (:goal {GOAL}))"
    game = ReadyGame(own_domain("put"), own_grammar("put"), problem)
    one, other = GameWorld(game), GameWorld(game)
    for command in APPLE:
        one.step(command)
    assert other.step("go to countertop 2").endswith("you see a apple 2, a mug 1, and a tomato 1.")


def test_on_shipped_games_every_kind_of_command_is_met_and_none_on_offer_is_refused() -> None:
    chance, met = random.Random(1), Counter[str]()
    for game in own_games():
        texts = game.texts()
        shipped = GameWorld(ReadyGame(texts.pddl_domain, texts.grammar, texts.pddl_problem))
        for _ in range(60):
            kinds = {each.split()[0]: each for each in chance.sample(shipped.admissible(), len(shipped.admissible()))}
            command = kinds[min(kinds, key=lambda kind: (met[kind], kind))]
            met[command.split()[0]] += 1
            assert shipped.step(command) not in ("", REFUSED), command
    verbs = "look inventory go open close examine take put move use clean heat cool slice help"
    assert met.keys() == set(verbs.split())
