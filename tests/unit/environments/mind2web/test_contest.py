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
    assert contest.render(group) is contest.render(group)
    assert contest.render(group) != contest.render(group[:1])
    seen = weakref.ref(contest)
    del contest
    assert seen() is None
