"""Steps prepared for play."""

import weakref

from environments.mind2web.environment import Mind2Web


def test_all_who_play_a_step_at_once_get_the_same_one_and_none_is_kept() -> None:
    environment = Mind2Web()
    sample, other = environment.samples()[:2]
    contest = environment.contest(sample)
    group = contest.line()[:5]
    assert environment.contest(sample) is contest
    assert environment.contest(other) is not contest
    assert contest.shown(group) is contest.shown(group)
    assert contest.shown(group) == contest.render(group) != contest.shown(group[:1])
    seen = weakref.ref(contest)
    del contest
    assert seen() is None
