"""The language level: plays single conversations in saved meetings and has them judged by conditions."""

from collections.abc import Mapping, Sequence

from environments.stss import prompt
from environments.stss.agent.performer import Performer
from environments.stss.characters.driver import Context, Driver, converse
from environments.stss.dataset import Persona, SocialTask
from environments.stss.invitation import SpokenLine
from environments.stss.language.judge import Judge, conditions
from environments.stss.language.scenarios import Scenario
from environments.stss.reply import SILENCE, Encounter, Utterance, limited
from proctor.environment import EnvironmentFault
from proctor.types import Value

Verdicts = tuple[bool, ...] | None


class Judged(Value):
    """The conversation of one scenario, its summary, and the verdicts on both."""

    scenario: str
    lines: tuple[SpokenLine, ...]
    summary: str
    conversation_met: Verdicts
    """Verdicts on the conversation; None if the judge's replies were unreadable."""
    summary_met: Verdicts


async def play_scenarios(
    task: SocialTask,
    scenarios: Sequence[Scenario],
    performer: Performer,
    *,
    personas: Mapping[str, Persona],
    driver: Driver,
    judge: Judge,
) -> list[Judged]:
    """Plays the scenarios of a task one after the other. Raises AgentUnavailable and EnvironmentFault."""
    results = []
    for scenario in scenarios:
        performer.notes = [f"Talked to {name}" for name in scenario.met]
        context = Context(
            persona=personas[scenario.partner],
            now=scenario.minute,
            partner=scenario.performer,
            doing=scenario.doing,
            place=scenario.place,
            commitments=scenario.commitments,
        )
        lines = await _talk(scenario, context, performer, driver)
        summary = await driver.summary(context._replace(lines=tuple(lines))) if len(lines) > 1 else ""
        results.append(
            Judged(
                scenario=scenario.id,
                lines=tuple(lines),
                summary=summary,
                conversation_met=await _verdicts(task, lines, judge, len(lines)),
                summary_met=await _verdicts(task, [SpokenLine(scenario.partner, summary)], judge, len(lines)),
            )
        )
    return results


async def _talk(scenario: Scenario, context: Context, performer: Performer, driver: Driver) -> list[SpokenLine]:
    text = prompt.encounter(scenario.minute, scenario.place, scenario.partner, scenario.doing, performer.checklist)
    reply = await performer.ask(text, Encounter, lambda reply: reply, begins=True)
    if reply is None or not reply.talk:
        return []

    async def performer_speaks(lines: Sequence[SpokenLine]) -> tuple[str, bool]:
        request = prompt.answered(scenario.partner, lines[-1].text)
        answer = await performer.ask(request, Utterance, lambda reply: reply)
        return (SILENCE, True) if answer is None else (limited(answer.utterance), answer.end)

    async def partner_speaks(lines: Sequence[SpokenLine]) -> tuple[str, bool]:
        text, end = await driver.reply(context._replace(lines=tuple(lines)))
        return limited(text), end

    opening = SpokenLine(scenario.performer, limited(reply.utterance))
    speaks = {scenario.performer: performer_speaks, scenario.partner: partner_speaks}
    return await converse(opening, scenario.partner, speaks)


async def _verdicts(task: SocialTask, lines: Sequence[SpokenLine], judge: Judge, spoken: int) -> Verdicts:
    """The judge's verdicts; all False if at most one utterance was made."""
    return await judge.verdicts(task, lines) if spoken > 1 else (False,) * len(conditions(task))


def language_metrics(results: Sequence[Judged]) -> dict[str, float]:
    """Success rate (SR) and goal condition success rate (GCSR) of conversations and summaries, and their numbers.

    Raises EnvironmentFault if no conversation has readable verdicts.
    """
    judged: Mapping[str, list[Verdicts]] = {
        "conversation": [result.conversation_met for result in results],
        "summary": [result.summary_met for result in results],
    }
    metrics = {"scenarios": float(len(results))}
    for level, verdicts in judged.items():
        read = [verdict for verdict in verdicts if verdict is not None]
        if not read and level == "conversation":
            raise EnvironmentFault(
                "no conversation has a verdict that could be read; without a model under `judge` only what is said in"
                " the people's one form is judged: name one, or another one"
            )
        metrics[f"judged_{level}"] = float(len(read))
        metrics[f"unscored_{level}"] = float(len(verdicts) - len(read))
        if read:
            metrics[f"sr_{level}"] = sum(map(all, read)) / len(read)
            metrics[f"gcsr_{level}"] = sum(sum(verdict) / len(verdict) for verdict in read) / len(read)
    return metrics
