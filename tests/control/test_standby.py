"""Workers on standby: they get flows when another worker is gone, and not before."""

from __future__ import annotations

import pytest

from penstock.control.fleet import coordinator as coordinator_module
from tests.control.test_placement import Fleet
from tests.control.test_placement import fleet as fleet


@pytest.fixture
def standing_by(fleet: Fleet) -> Fleet:
    """Two workers, one of which is on standby, and two flows."""
    fleet.join("first")
    fleet.flows.join("spare", 1, "http://127.0.0.1:1", "token", 600.0, {}, standby=True)
    for name in ("p", "q"):
        fleet.create(name)
    fleet.round()
    return fleet


def states(fleet: Fleet) -> dict[str, str]:
    return {worker.id: worker.state for worker in fleet.flows.workers()}


def test_a_worker_on_standby_gets_nothing_while_others_are_there(standing_by: Fleet) -> None:
    for name in ("p", "q"):
        standing_by.report(name)
    standing_by.pass_time(1000)
    standing_by.round()
    assert standing_by.held() == {"first": 2, "spare": 0}
    assert standing_by.give_back("first") == [], "nor is it a target of moves"


def test_a_worker_on_standby_takes_over_in_the_same_round(standing_by: Fleet) -> None:
    standing_by.flows.leave("first")
    standing_by.round()
    assert standing_by.held() == {"spare": 2}
    assert states(standing_by) == {"spare": "ready"}
    assert standing_by.flow("p").epoch == 2


def test_one_is_promoted_for_each_that_is_gone(standing_by: Fleet) -> None:
    standing_by.join("second")
    for name in ("spare 2", "spare 3"):
        standing_by.flows.join(name, 1, "http://127.0.0.1:1", "token", 600.0, {}, standby=True)
    standing_by.round()
    standing_by.flows.leave("first")
    standing_by.round()
    assert sorted(states(standing_by).values()) == ["ready", "ready", "standby", "standby"]
    standing_by.round()
    assert sorted(states(standing_by).values()) == ["ready", "ready", "standby", "standby"]


def test_a_drained_worker_is_not_gone(standing_by: Fleet) -> None:
    standing_by.join("second")
    standing_by.round()
    standing_by.service.drain_worker("first")
    standing_by.round()
    standing_by.give_back("first")
    standing_by.round()
    assert states(standing_by)["spare"] == "standby"


def test_without_any_other_a_worker_on_standby_works_after_a_while(fleet: Fleet) -> None:
    """At a start it may be the first to join; if it stays the only one, it is better than none."""
    fleet.flows.join("spare", 1, "http://127.0.0.1:1", "token", 600.0, {}, standby=True)
    fleet.create("p")
    fleet.round()
    assert states(fleet) == {"spare": "standby"}
    fleet.coordinator._alone_since -= coordinator_module.ALONE_S
    fleet.round()
    assert states(fleet) == {"spare": "ready"}
    assert fleet.held() == {"spare": 1}
