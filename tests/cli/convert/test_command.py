"""`penstock convert` as a command: exit codes, output and hostile input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.specs.text import read_all
from tests.cli.conftest import Command

CORPUS = Path(__file__).parent / "corpus"

MAPPED = """\
input: {generate: {mapping: 'root.id = counter()', interval: 1s, count: 3}}
output: {drop: {}}
"""
CHANGED = """\
input:
  stdin: {}
pipeline:
  processors:
    - jq: {query: .a}
output:
  stdout: {}
"""


def test_all_mapped_is_0_and_what_comes_out_is_valid(in_process: Command, tmp_path: Path) -> None:
    (tmp_path / "numbers.yaml").write_text(MAPPED)
    done = in_process("convert", "numbers.yaml", "--out", "documents.yaml")
    assert (done.exit_code, done.stdout) == (0, ""), done.stderr
    assert "1 document, 0 changes, 0 notes" in done.stderr
    assert in_process("validate", "--quick", "documents.yaml").exit_code == 0
    (document,) = read_all((tmp_path / "documents.yaml").read_bytes())
    assert document["metadata"]["name"] == "numbers"
    assert document["spec"]["source"] == {
        "type": "generate",
        "rate": 1.0,
        "count": 3,
        "row": {"id": "seq + 1"},
    }


def test_a_finding_that_changes_behaviour_is_1_unless_it_is_accepted(in_process: Command) -> None:
    done = in_process("convert", "-", stdin=CHANGED)
    assert done.exit_code == 1
    assert "-:5: change[not_mapped] pipeline.processors[0].jq: the processor 'jq' was left out" in done.stderr
    assert "# line 5 pipeline.processors[0].jq" in done.stdout
    assert read_all(done.stdout)[0]["spec"]["sinks"] == [{"id": "stdout", "type": "stdout", "format": "text"}]
    assert in_process("convert", "-", "--lenient", stdin=CHANGED).exit_code == 0


def test_json_has_documents_and_findings(in_process: Command) -> None:
    done = in_process("convert", "-", "--json", stdin=CHANGED)
    assert done.exit_code == 1
    told = json.loads(done.stdout)
    assert (told["from"], told["changed"], len(told["documents"])) == ("bento", True, 1)
    (finding,) = told["findings"]
    assert (finding["line"], finding["level"], finding["code"]) == (5, "change", "not_mapped")
    assert finding["path"] == "pipeline.processors[0].jq"
    assert finding["hint"]


@pytest.mark.parametrize(
    ("text", "code", "exit_code"),
    [
        ("", "no_documents", 3),
        ("# nothing\n", "no_documents", 3),
        ("input: [unclosed", "not_yaml", 3),
        ("just a sentence", "unknown_format", 3),
        ("- 1\n- 2\n", "unknown_format", 3),
        ("42", "unknown_format", 3),
        ("kind: Pipeline\nmetadata: {name: x}\nspec: {}\n", "unknown_format", 3),
        ("input: {a: &a [*a]}\noutput: {}\n", "not_yaml", 3),
        ("input: " + "{a: " * 200 + "1" + "}" * 200, "not_yaml", 3),
        ("input: !!python/object/apply:os.system ['true']\n", "not_yaml", 3),
    ],
    ids=["empty", "comment", "not YAML", "prose", "list", "number", "ours", "loop", "deep", "tag"],
)
def test_input_that_is_no_configuration(in_process: Command, text: str, code: str, exit_code: int) -> None:
    done = in_process("convert", "-", "--json", stdin=text)
    assert done.exit_code == exit_code, done.stdout
    assert json.loads(done.stdout)["code"] == code


def test_wrong_usage(in_process: Command, tmp_path: Path) -> None:
    assert in_process("convert", "missing.yaml").exit_code == 2
    assert in_process("convert", "-", "--from", "nifi", stdin=MAPPED).exit_code == 2
    assert in_process("convert", "-", "--schema", "id BLUB", stdin=MAPPED).exit_code == 2
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    assert in_process("convert", "binary").exit_code == 2


@pytest.mark.parametrize("system", ["bento", "deltaforge", "padas", "kafka-connect"])
@pytest.mark.parametrize("text", ["{}", "[]", "a: 1", "input: 5\noutput: x", "spec: []", "spec: {sinks: 3}"])
def test_any_mapping_is_converted_or_refused_as_any_system(
    in_process: Command, system: str, text: str
) -> None:
    done = in_process("convert", "-", "--from", system, "--json", stdin=text)
    assert done.exit_code in (0, 1, 3), done.output
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception


def test_a_huge_configuration_takes_seconds(in_process: Command) -> None:
    steps = "".join(f"    - mapping: 'root.a{i} = this.b{i}'\n" for i in range(3000))
    text = f"input: {{stdin: {{}}}}\npipeline:\n  processors:\n{steps}output: {{stdout: {{}}}}\n"
    done = in_process("convert", "-", "--json", stdin=text)
    assert done.exit_code == 0
    assert len(json.loads(done.stdout)["documents"][0]["spec"]["processors"]) == 3000


def test_variables_name_what_they_are_for(in_process: Command) -> None:
    done = in_process("convert", str(CORPUS / "kafka-connect" / "debezium_postgres.json"), "--json")
    told = json.loads(done.stdout)
    assert told["documents"][0]["spec"]["source"]["password"] == "${DATABASE_PASSWORD}"
    (secret,) = [each for each in told["findings"] if each["code"] == "secret"]
    assert secret["hint"] == "export DATABASE_PASSWORD where the flow runs"
