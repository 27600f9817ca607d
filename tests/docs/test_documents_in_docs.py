"""Every YAML in README, docs and examples is valid, and every example runs."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock.cli.samples import read_file
from penstock.control.fleet.lifecycle import Keeper
from penstock.engine.plan.analysis import analyse, offline
from penstock.engine.plan.flow import resolve_flow
from penstock.engine.trials.declared_tests import cases_of, run_case
from penstock.engine.trials.trial import Bench
from penstock.specs.text import read_all, read_path
from tests.flows import NO_STREAMS

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))
BLOCK = re.compile(r"^```ya?ml\n(.*?)^```", re.MULTILINE | re.DOTALL)
FINITE = [path for path in EXAMPLES if re.search(r"finite: true|^ {4}count: \d+$", path.read_text(), re.M)]
"""Examples that end on their own. The others wait for a sender or need a database: their `tests:` run."""
VARIABLE = re.compile(r"\$\{([A-Z][A-Z0-9_]*)\}")

blocks = [
    pytest.param(text, id=f"{page.relative_to(ROOT)}:{number}")
    for page in PAGES
    for number, text in enumerate(BLOCK.findall(page.read_text()), 1)
]


def check(spark: SparkSession, documents: list[Any]) -> None:
    lookup, known = offline(documents)
    for document in documents:
        analysis = analyse(document, lookup, known, spark=spark)
        assert analysis.valid, analysis.errors


@pytest.mark.parametrize("text", blocks)
def test_a_block_of_yaml(spark: SparkSession, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    documents = read_all(text)
    assert documents
    for name in VARIABLE.findall(text):
        monkeypatch.setenv(name, "secret")
    # A fragment, such as one source, is validated where it comes from; a document is validated here.
    check(spark, [d for d in documents if isinstance(d, dict) and "kind" in d and "metadata" in d])


def test_the_first_pipeline_of_the_readme_is_the_example() -> None:
    (first, *_) = BLOCK.findall((ROOT / "README.md").read_text())
    assert read_all(first) == read_path(ROOT / "examples" / "first.yaml")


@pytest.mark.slow
@pytest.mark.parametrize("example", FINITE, ids=lambda path: path.stem)
def test_an_example_runs(
    spark: SparkSession, example: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    documents = read_path(example)
    check(spark, documents)
    lookup, _ = offline(documents)
    (pipeline,) = [d for d in documents if d["kind"] == "Pipeline"]
    keeper = Keeper(
        example.stem,
        lambda: resolve_flow(pipeline, lookup, NO_STREAMS),
        spark,
        lambda _: str(tmp_path / "ck"),
    )
    keeper.start()
    keeper.join(120)
    state = keeper.state
    assert (state.outcome, state.error) == ("completed", None)
    assert all(sink["events"] for sink in state.ops["sinks"].values())
    assert not any(sink["missed_batches"] for sink in state.ops["sinks"].values())


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_a_template_of_the_web_app(spark: SparkSession, example: Path) -> None:
    title, about, *_ = example.read_text().splitlines()
    assert title.startswith("# ")
    assert about.startswith("# ")
    documents = read_path(example)
    check(spark, documents)
    assert documents[-1]["kind"] in ("Pipeline", "Task")
    assert example in FINITE or cases_of(documents[-1]), "it would never be run"


@pytest.mark.parametrize("page", [*EXAMPLES, ROOT / "docs" / "testing.md"], ids=lambda path: path.stem)
def test_its_tests_pass(spark: SparkSession, page: Path) -> None:
    text = page.read_text()
    documents = read_all("\n---\n".join(BLOCK.findall(text)) if page.suffix == ".md" else text)
    bench = Bench(spark, *offline(documents))
    for document in documents:
        for case in cases_of(document):
            result = run_case(bench, document, case, lambda path: read_file(page.parent / path))
            assert result.passed, (case.name, result.differences, result.errors)


def test_the_demo_is_what_it_says(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from penstock.demo import prepare

    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path))
    documents = prepare(tmp_path)
    lookup, known = offline(documents)
    judged = {
        f"{d['kind']} {d['metadata']['name']}": analyse(d, lookup, known, spark=spark) for d in documents
    }
    assert {name: analysis.valid for name, analysis in judged.items()} == {
        "Pipeline demo orders": True,
        "Pipeline demo visits": True,
        "Pipeline demo broken": False,
        "Pipeline demo page views": True,
        "Stream demo clicks": True,
        "Stream demo slow clicks": True,
        "Stream demo page views": True,
        "Source demo clicks": True,
        "Source demo visitors": True,
        "Task demo slow clicks": True,
    }
    assert [e.path for e in judged["Pipeline demo broken"].errors] == ["spec.processors[0].query"]
