"""The metrics of many games: win rate and damage rate, by opponent and seat (AgentBench v0.2, card_game)."""

from collections.abc import Sequence

from environments.card_game.rules.opponents import NAMES
from environments.card_game.scoring import ALL_HP, score
from proctor.summary import mean
from proctor.types import Finish, Summary

COVERAGE = "Rates are over scored games; a game that ended in a fault is played again and enters no rate."
WORDING = (
    "The rules are in our own words, with the content and the reply forms of the published prompts; the state also "
    "lists the hits and passives of the last actions."
)
FUNCTIONS = "The rules and the functions are in our own words; no game with function calls was published."
SEATS = "Player 0 has an advantage; the agent plays each opponent from both seats."


def summarize(
    finishes: Sequence[Finish], legacy_agent_bugs: bool, stages: Sequence[int] = (2,), wording: str = WORDING
) -> Summary:
    """All metrics; a rate over no scored games is left out. `stages` are the planned ones, `wording` is a note."""
    scored = [finish for finish in finishes if finish.score is not None]
    games_of = {stage: [finish for finish in scored if finish.detail.get("stage") == stage] for stage in (1, 2)}
    rates = {stage: _rates(games) for stage, games in games_of.items() if games}
    names = ("win_rate", "damage_rate", "score") if rates else ()
    metrics = {name: mean([each[name] for each in rates.values()]) for name in names}
    if len(rates) == 2:
        for stage, of_stage in rates.items():
            metrics |= {f"stage{stage}_{name}": value for name, value in of_stage.items()}
    for opponent in NAMES:
        for seat in (0, 1):
            games = [
                finish for finish in scored if (finish.detail["opponent"], finish.detail["seat"]) == (opponent, seat)
            ]
            if games:
                metrics[f"{opponent}_seat{seat}_win_rate"] = _rates(games)["win_rate"]
                metrics[f"{opponent}_seat{seat}_damage_rate"] = _rates(games)["damage_rate"]
    guesses = sum(finish.metrics["guesses"] for finish in scored)
    if guesses:
        metrics["right_guess_rate"] = sum(finish.metrics["right_guesses"] for finish in scored) / guesses
    metrics |= {"requested": float(len(finishes)), "scored": float(len(scored))}
    switch = f"legacy_agent_bugs: {str(legacy_agent_bugs).lower()}."
    left_out = tuple(
        f"`score` and its rates are over stage {played} alone: no game of stage {stage} is scored."
        for played in rates
        for stage in set(stages) - set(rates)
    )
    opponents = ", ".join(dict.fromkeys(str(finish.detail["opponent"]) for finish in scored))
    inferred = (f"Errors are about other deals against these opponents: {opponents}.",) if opponents else ()
    return Summary(primary="score", metrics=metrics, notes=(*left_out, switch, SEATS, *inferred, COVERAGE, wording))


def _rates(games: Sequence[Finish]) -> dict[str, float]:
    win_rate = mean([game.metrics["win"] for game in games])
    damage_rate = mean([game.metrics["damage"] / ALL_HP for game in games])
    return {"win_rate": win_rate, "damage_rate": damage_rate, "score": score(win_rate, damage_rate)}
