"""The limits of a process that answers questions, around an app without Spark."""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from penstock.control.questions import limits as module
from penstock.control.questions.limits import DEADLINE, Limits, memory_bytes
from penstock.settings.model import QuestionSettings

NO_SPARK: Any = SimpleNamespace(sparkContext=SimpleNamespace(_gateway=SimpleNamespace()))


class Stage:
    """An app with a question that is answered when told to, and what has become of its process."""

    def __init__(self, **settings: int) -> None:
        self.ended: list[str] = []
        self.left = 0
        self.end = threading.Event()
        app = FastAPI()

        @app.post("/slow")
        async def slow() -> str:
            await asyncio.sleep(600)
            return "late"

        @app.post("/quick")
        def quick() -> str:
            return "answer"

        chosen = QuestionSettings(deadline_ms=100, **settings)  # type: ignore[arg-type]
        self.limits = Limits({"/slow", "/quick"}, chosen, NO_SPARK, self._leave, self._end)
        self.app = self.limits.around(app)

    def _leave(self) -> None:
        self.left += 1

    def _end(self, reason: str) -> None:
        self.ended.append(reason)
        self.end.set()


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GRACE_S", "SENDING_S", "LAST_S", "MEMORY_S"):
        monkeypatch.setattr(module, name, 0.1)


@pytest.fixture
def stage() -> Stage:
    return Stage()


def test_a_question_is_answered(stage: Stage) -> None:
    with TestClient(stage.app) as client:
        assert client.post("/quick").json() == "answer"
        assert client.post("/nowhere").status_code == 404
    assert stage.ended == []
    assert stage.limits.idle_s >= 0


def test_past_its_deadline_the_process_ends_and_others_are_told_to_ask_again(stage: Stage) -> None:
    with TestClient(stage.app) as client:
        answers: list[Any] = []

        def ask() -> None:
            answers.append(client.post("/slow", headers={DEADLINE: "60"}))

        other = threading.Thread(target=ask)
        other.start()
        late = client.post("/slow")
        assert late.status_code == 408
        (problem,) = late.json()["problems"]
        assert problem["code"] == "deadline_exceeded"
        assert "questions.deadline_ms" in problem["hint"]
        other.join(10)
        assert [answer.json()["problems"][0]["code"] for answer in answers] == ["interrupted"]
        assert client.post("/quick").json()["problems"][0]["code"] == "interrupted"
        assert stage.end.wait(10)
    assert len(stage.ended) == 1
    assert stage.left == 1


def test_beyond_its_memory_the_process_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    assert memory_bytes() > 10 * 1024 * 1024
    monkeypatch.setattr(module, "MIB", 1)  # so that any process is beyond it
    stage = Stage()
    stage.limits.start()
    with TestClient(stage.app) as client:
        answer = client.post("/slow", headers={DEADLINE: "60"})
        assert answer.status_code == 503
        (problem,) = answer.json()["problems"]
        assert problem["code"] == "out_of_memory"
        assert "questions.memory_mb" in problem["hint"]
        assert stage.end.wait(10)


def test_a_process_without_questions_ends(stage: Stage) -> None:
    from penstock.cli.worker import _end_when_idle

    ended = threading.Event()
    with TestClient(stage.app) as client:
        client.post("/quick")
        assert stage.limits.idle_s < 10
    worker: Any = SimpleNamespace(stop=ended.set)
    _end_when_idle(worker, stage.limits, 0.2)
    assert ended.wait(10)
