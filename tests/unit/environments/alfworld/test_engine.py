"""The engine on the rules that ship: every command, every text, and the points that are easy to miss."""

import random
from collections import Counter

import pytest

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


def world(*commands: str, goal: str = GOAL, facts: str = "", format: Format = "put") -> GameWorld:
    problem = f"(define (problem p) (:objects {OBJECTS}) (:init {FACTS} {facts}) (:goal {goal}))"
    begun = GameWorld(ReadyGame(own_domain(format), own_grammar(format).replace("@TASK@", "test."), problem))
    for command in commands:
        assert begun.step(command) != REFUSED, command
    return begun


def said(*commands: str, format: Format = "put", facts: str = "") -> str:
    """What is said after the last of some commands."""
    return world(*commands[:-1], format=format, facts=facts).step(commands[-1])


APPLE = ("go to countertop 1", "take apple 2 from countertop 2")
KNIFE = ("go to countertop 1", "take knife 1 from countertop 1")


# Commands and effects.


def test_the_room_is_listed_by_falling_numbers_and_the_task_follows() -> None:
    assert world().intro == (
        "-= Welcome to TextWorld, ALFRED! =-\n\nYou are in the middle of a room. Looking quickly around you, you see a "
        "cabinet 1, a countertop 2, a countertop 1, a desk 1, a fridge 1, a microwave 1, and a sinkbasin 1.\n\n"
        "Your task is to: test."
    )


def test_at_first_one_can_go_anywhere_look_and_check_the_inventory() -> None:
    places = ["cabinet 1", "countertop 1", "countertop 2", "desk 1", "fridge 1", "microwave 1", "sinkbasin 1"]
    assert world().admissible() == [*(f"go to {place}" for place in places), "inventory", "look"]


def test_going_is_offered_to_no_receptacle_of_the_place_where_one_is() -> None:
    admissible = world("go to countertop 1").admissible()
    assert [each for each in admissible if each.startswith("go to co")] == []
    assert {"examine countertop 1", "examine countertop 2"} <= set(admissible)


def test_arrival_tells_the_location_in_the_old_format_and_the_receptacle_in_the_new() -> None:
    assert said("go to cabinet 1") == "You arrive at loc 6. The cabinet 1 is closed."
    assert said("go to cabinet 1", format="move") == "You arrive at cabinet 1. The cabinet 1 is closed."


def test_opening_shows_what_is_inside_and_closing_hides_it() -> None:
    opened = world("go to cabinet 1")
    assert opened.step("open cabinet 1") == "You open the cabinet 1. The cabinet 1 is open. In it, you see a apple 1."
    assert "open cabinet 1" not in opened.admissible()
    assert opened.step("close cabinet 1") == "You close the cabinet 1."
    assert "close cabinet 1" not in opened.admissible()
    assert opened.step("examine cabinet 1") == "The cabinet 1 is closed."


def test_taking_needs_empty_hands_and_an_open_receptacle() -> None:
    assert "take apple 1 from cabinet 1" not in world("go to cabinet 1").admissible()
    assert "take apple 1 from cabinet 1" in world("go to cabinet 1", "open cabinet 1").admissible()
    assert said(*APPLE) == "You pick up the apple 2 from the countertop 2."
    assert not any(each.startswith("take") for each in world(*APPLE).admissible())


def test_putting_needs_a_receptacle_that_is_open_and_can_contain_the_thing() -> None:
    held = world(*APPLE)
    assert held.step("put apple 2 in/on countertop 1") == "You put the apple 2 in/on the countertop 1."
    assert "put apple 2 in/on cabinet 1" not in world(*APPLE, "go to cabinet 1").admissible()
    assert "put apple 2 in/on cabinet 1" in world(*APPLE, "go to cabinet 1", "open cabinet 1").admissible()
    assert not any("put" in each for each in world(*APPLE, "go to sinkbasin 1").admissible())
    assert said(*APPLE, "move apple 2 to countertop 1", format="move") == "You move the apple 2 to the countertop 1."


def test_objects_are_examined_in_the_hand_only() -> None:
    assert "examine apple 2" not in world("go to countertop 1").admissible()
    assert said(*APPLE, "examine apple 2") == "There's nothing special about apple 2."


def test_a_lamp_is_always_turned_on_and_can_be_used_again() -> None:
    lamp = world("go to desk 1")
    assert lamp.step("use desklamp 1") == "You turn on the desklamp 1."
    assert lamp.step("use desklamp 1") == "You turn on the desklamp 1."


def test_a_lamp_in_a_closed_receptacle_can_be_used() -> None:
    assert "use desklamp 1" in world("go to desk 1", facts="(openable desk_bar_1)").admissible()


@pytest.mark.parametrize(
    ("place", "command", "answer", "looks"),
    [
        ("sinkbasin 1", "clean apple 2 with sinkbasin 1", "You clean the apple 2 using the sinkbasin 1.", "clean"),
        ("microwave 1", "heat apple 2 with microwave 1", "You heat the apple 2 using the microwave 1.", "hot"),
        ("fridge 1", "cool apple 2 with fridge 1", "You cool the apple 2 using the fridge 1.", "cold"),
    ],
)
def test_machines_work_closed_and_again_on_what_is_done(place: str, command: str, answer: str, looks: str) -> None:
    treated = world(*APPLE, f"go to {place}")
    assert treated.step(command) == answer
    assert command in treated.admissible()
    assert treated.step("examine apple 2") == f"This is a {looks} apple 2."


def test_heat_and_cold_drive_each_other_out() -> None:
    both = world(*APPLE, "go to microwave 1", "heat apple 2 with microwave 1")
    both.step("go to fridge 1")
    both.step("cool apple 2 with fridge 1")
    assert both.step("examine apple 2") == "This is a cold apple 2."


def test_a_knife_slices_what_lies_at_the_place_even_in_a_closed_receptacle() -> None:
    assert said(*KNIFE, "slice apple 2 with knife 1") == "You sliced the apple 2 with the knife 1."
    closed = world(*KNIFE, "go to cabinet 1")
    assert closed.step("slice apple 1 with knife 1") == "You sliced the apple 1 with the knife 1."
    assert "slice apple 1 with knife 1" in closed.admissible()
    assert "slice apple 2 with knife 1" not in closed.admissible()


def test_help_is_of_the_new_format_alone_and_begins_without_its_blank_line() -> None:
    assert "help" not in world().admissible()
    text = said("help", format="move")
    assert text.startswith("What you can do:\n  look ")
    assert text.endswith("with a knife\n")


def test_commands_are_sorted_by_code_points_and_blanks_around_them_do_not_matter() -> None:
    game = next(game for game in own_games() if game.problem.count(" DrawerType)\n") > 3)
    texts = game.texts()
    admissible = GameWorld(ReadyGame(texts.pddl_domain, texts.grammar, texts.pddl_problem)).admissible()
    assert admissible == sorted(set(admissible))
    assert said("  look ") == said("look")


@pytest.mark.parametrize("command", ["", "go to moon 1", "GO TO DESK 1", "open fridge 1", "put apple 2 in/on desk 1"])
def test_anything_else_is_refused_and_changes_nothing(command: str) -> None:
    idle = world()
    before = idle.admissible()
    assert (idle.step(command), idle.admissible()) == (REFUSED, before)


# Texts.


def test_lists_of_none_one_two_and_more() -> None:
    assert said("go to sinkbasin 1").endswith("On the sinkbasin 1, you see nothing.")
    assert said("go to desk 1").endswith("On the desk 1, you see a desklamp 1.")
    assert said("go to countertop 1").endswith("On the countertop 1, you see a knife 1, and a tomato 1.")
    assert said("go to countertop 2").endswith("On the countertop 2, you see a apple 2, a mug 1, and a tomato 1.")


def test_look_sees_nothing_before_the_first_move() -> None:
    assert said("look") == "You are in the middle of a room. Looking quickly around you, you see nothing."


def test_look_names_what_one_faces_without_articles() -> None:
    assert said("go to countertop 1", "look") == (
        "You are facing the countertop 2, and countertop 1. Next to it, you see nothing."
    )


def test_the_inventory_tells_what_is_carried() -> None:
    assert said("inventory") == "You are not carrying anything."
    assert said(*APPLE, "inventory") == "You are carrying: a apple 2."


def test_a_mug_shows_what_is_in_it() -> None:
    assert said("go to countertop 1", "take mug 1 from countertop 2", "examine mug 1") == (
        "This is a normal mug 1. In it, you see a spoon 1."
    )


@pytest.mark.parametrize(
    ("facts", "text"),
    [
        ("isClean isHot isSliced", "This is a hot and clean sliced apple 2."),
        ("isClean isCool isSliced", "This is a cool and clean sliced apple 2."),
        ("isClean isSliced", "This is a clean sliced apple 2."),
        ("isHot isSliced", "This is a hot sliced apple 2."),
        ("isCool isSliced", "This is a cool sliced apple 2."),
        ("isClean isHot", "This is a hot and clean apple 2."),
        ("isClean isCool", "This is a cool and clean apple 2."),
        ("isHot", "This is a hot apple 2."),
        ("isClean", "This is a clean apple 2."),
        ("isCool", "This is a cold apple 2."),
        ("toggleable isToggled isSliced", "This apple 2 is on."),
        ("toggleable", "There's nothing special about apple 2."),
        ("isSliced", "This is a sliced apple 2."),
        ("isReceptacleObject isHot", "This is a normal apple 2. In it, you see nothing."),
    ],
)
def test_an_object_looks_as_the_first_of_its_states_says(facts: str, text: str) -> None:
    known = "".join(f"({fact} apple_bar_1)" for fact in facts.split())
    assert said(*APPLE, "examine apple 2", facts=known) == text


# Points that are easy to miss.


def test_the_floor_shows_what_was_taken_from_one_receptacle_and_put_on_another_of_the_place() -> None:
    moved = world(*APPLE, "put apple 2 in/on countertop 1")
    assert moved.step("look").endswith("Next to it, you see a apple 2.")
    moved.step("take apple 2 from countertop 1")
    moved.step("put apple 2 in/on countertop 2")
    assert moved.step("look").endswith("Next to it, you see a apple 2."), "not_in(apple 2, countertop 1) still holds"


def test_what_was_put_back_where_it_was_is_not_on_the_floor() -> None:
    assert world(*APPLE, "put apple 2 in/on countertop 2").step("look").endswith("you see nothing.")


def test_the_floor_shows_an_object_once_for_each_receptacle_that_it_was_taken_from() -> None:
    desk = "(receptacleAtLocation desk_bar_1 loc_bar_2)"
    moved = world(*APPLE, "put apple 2 in/on countertop 1", "take apple 2 from countertop 1", facts=desk)
    assert moved.step("look").endswith("you see nothing."), "it is not at the location while it is held"
    moved.step("put apple 2 in/on desk 1")
    assert moved.step("look").endswith("you see a apple 2, and a apple 2.")


def test_an_object_in_two_receptacles_is_held_and_still_listed_in_the_other() -> None:
    held = world("go to countertop 1", "take tomato 1 from countertop 1")
    assert held.step("examine countertop 2") == "On the countertop 2, you see a apple 2, a mug 1, and a tomato 1."
    assert held.step("inventory") == "You are carrying: a tomato 1."


def test_a_phantom_can_satisfy_a_goal() -> None:
    goal = """(exists (?r - receptacle ?o - object ?a - agent) (and
        (inReceptacle ?o ?r) (receptacleType ?r countertoptype) (objectType ?o tomatotype) (holds ?a ?o)))"""
    assert world("go to countertop 1", "take tomato 1 from countertop 1", goal=goal).won


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


def test_what_is_declared_but_in_no_fact_is_nowhere() -> None:
    assert "curtains" not in world().intro


def test_a_treated_object_in_its_place_wins_and_nothing_before() -> None:
    plan = (*APPLE, "go to sinkbasin 1", "clean apple 2 with sinkbasin 1", "go to cabinet 1", "open cabinet 1")
    won = world(*plan)
    assert not won.won
    won.step("put apple 2 in/on cabinet 1")
    assert won.won


def test_two_objects_must_be_in_the_same_receptacle() -> None:
    goal = """(exists (?r - receptacle) (exists (?o1 - object) (and (objectType ?o1 appletype) (inReceptacle ?o1 ?r)
        (exists (?o2 - object) (and (not (= ?o1 ?o2)) (objectType ?o2 appletype) (inReceptacle ?o2 ?r))))))"""
    two = world("go to cabinet 1", "open cabinet 1", "take apple 1 from cabinet 1", "go to countertop 1", goal=goal)
    two.step("put apple 1 in/on countertop 1")
    assert not two.won
    two.step("take apple 1 from countertop 1")
    two.step("put apple 1 in/on countertop 2")
    assert two.won


def test_the_lamp_must_be_on_where_the_agent_is_and_the_object_held() -> None:
    goal = """(and
        (exists (?ot - object ?r - receptacle ?a - agent ?l - location) (and (objectType ?ot desklamptype)
            (isToggled ?ot) (receptacleAtLocation ?r ?l) (atLocation ?a ?l) (inReceptacle ?ot ?r)))
        (exists (?o - object ?a - agent) (and (objectType ?o appletype) (holds ?a ?o))))"""
    lit = world("go to desk 1", "use desklamp 1", goal=goal)
    assert not lit.won
    for command in APPLE:
        lit.step(command)
    assert not lit.won
    lit.step("go to desk 1")
    assert lit.won


def test_worlds_of_one_game_do_not_disturb_each_other() -> None:
    problem = f"(define (problem p) (:objects {OBJECTS}) (:init {FACTS}) (:goal {GOAL}))"
    game = ReadyGame(own_domain("put"), own_grammar("put"), problem)
    one, other = GameWorld(game), GameWorld(game)
    for command in APPLE:
        one.step(command)
    assert other.step("go to countertop 2").endswith("you see a apple 2, a mug 1, and a tomato 1.")


# The games that ship.


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
