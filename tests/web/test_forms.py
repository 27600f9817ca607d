"""Forms, in a real browser and against what the server describes."""

from __future__ import annotations

import json

from tests.web import catalogue


def test_the_components_that_the_forms_are_tested_with_are_the_current_ones() -> None:
    kept = json.loads(catalogue.FILE.read_text(encoding="utf-8"))
    assert kept == json.loads(catalogue.written()), "run: python -m tests.web.catalogue"
