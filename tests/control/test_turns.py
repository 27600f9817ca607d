"""Flows start a few at a time, in the order in which they asked."""

from __future__ import annotations

import threading
import time

import pytest

from penstock.control.fleet import start_turns as module
from penstock.control.fleet.start_turns import Turn, Turns


def begun(*turns: Turn) -> list[bool]:
    return [turn.begun for turn in turns]


def test_turns_are_given_in_order_as_others_end() -> None:
    turns = Turns(2)
    first, second, third, fourth = (turns.ask() for _ in range(4))
    assert begun(first, second, third, fourth) == [True, True, False, False]
    second.end()
    assert begun(third, fourth) == [True, False]
    second.end()
    assert begun(fourth) == [False], "a turn that ends twice makes room once"
    first.end()
    assert begun(fourth) == [True]


def test_without_a_limit_nothing_waits() -> None:
    turns = Turns()
    assert all(turns.ask().wait() for _ in range(100))


def test_those_who_ask_for_the_front_keep_their_order_among_themselves() -> None:
    turns = Turns(1)
    running, usual = turns.ask(), turns.ask()
    hurried, hurried_too = turns.ask(front=True), turns.ask(front=True)
    assert sorted([usual, hurried, hurried_too], key=lambda turn: turn.ticket) == [
        hurried,
        hurried_too,
        usual,
    ]
    running.end()
    assert begun(hurried, hurried_too, usual) == [True, False, False]
    hurried.end()
    assert begun(hurried_too, usual) == [True, False]


def test_who_leaves_the_queue_is_woken_and_takes_no_turn() -> None:
    turns = Turns(1)
    running, leaving, last = turns.ask(), turns.ask(), turns.ask()
    answers: list[bool] = []
    thread = threading.Thread(target=lambda: answers.append(leaving.wait()))
    thread.start()
    leaving.leave()
    thread.join(10)
    assert answers == [False]
    running.leave()
    assert begun(last) == [False], "a turn that has begun is not left"
    running.end()
    assert begun(leaving, last) == [False, True]


def test_a_start_that_hangs_lets_others_pass_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LONGEST_TURN_S", 0.05)
    turns = Turns(1)
    hanging, waiting = turns.ask(), turns.ask()
    turns.look()
    assert begun(hanging, waiting) == [True, False]
    time.sleep(0.06)
    turns.look()
    assert begun(waiting) == [True]
    hanging.end()
    later = turns.ask()
    assert begun(later) == [False], "the end of the one that was given up makes no room"


def test_no_start_begins_while_a_document_is_judged() -> None:
    turns = Turns(1)
    with turns.hold(), turns.hold():
        waiting = turns.ask()
        turns.look()
        assert begun(waiting) == [False]
    assert begun(waiting) == [True]


def test_documents_without_end_hold_up_a_start_only_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LONGEST_HOLD_S", 0.05)
    turns = Turns(2)
    with turns.hold():
        first, second = turns.ask(), turns.ask()
        time.sleep(0.06)
        turns.look()
        assert begun(first, second) == [True, False], "one start, and the next waits as long again"
        time.sleep(0.06)
        turns.look()
        assert begun(second) == [True]
