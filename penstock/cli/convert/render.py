"""Documents as YAML, with each finding as a comment at its place."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

from penstock.cli.convert.draft import Finding
from penstock.specs.text import to_yaml

STEP = re.compile(r"\.?([^.\[\]]+)|\[(\d+)\]")


def to_commented_yaml(
    documents: Sequence[Mapping[str, Any]], findings: Sequence[Finding], heading: str
) -> str:
    """The documents as one YAML text. Findings without a place are at its beginning."""
    texts = [to_yaml(document) for document in documents]
    parts = [[f"# {heading}", *_comments([each for each in findings if each.at is None], "")]]
    for i, text in enumerate(texts):
        root = f"documents[{i}]"
        own = [each for each in findings if each.at is not None and _is_in(each.at, root)]
        parts.append(["---"] * (i > 0) + _commented(text, own, len(root)))
    return "\n".join(line for part in parts for line in part) + "\n"


def _is_in(path: str, root: str) -> bool:
    return path == root or path.startswith((f"{root}.", f"{root}["))


def _commented(text: str, findings: Sequence[Finding], skip: int) -> list[str]:
    lines = text.rstrip("\n").split("\n")
    above: dict[int, list[Finding]] = {}
    tree = yaml.compose(text, Loader=yaml.SafeLoader)
    for finding in findings:
        above.setdefault(_line_of(tree, (finding.at or "")[skip:]), []).append(finding)
    found: list[str] = []
    for number, line in enumerate(lines):
        indent = line[: len(line) - len(line.lstrip())]
        found += _comments(above.get(number, ()), indent)
        found.append(line)
    return found


def _comments(findings: Sequence[Finding], indent: str) -> Iterator[str]:
    for finding in findings:
        where = f" {finding.path}" if finding.path else ""
        hint = f" ({finding.hint})" if finding.hint else ""
        text = f"line {finding.line}{where}: {finding.message}{hint}"
        yield f"{indent}# {' '.join(text.split())}"


def _line_of(node: Any, path: str) -> int:
    """The line of the output where a path starts, or where its nearest enclosing part starts."""
    line = 0
    for name, index in STEP.findall(path):
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                if key.value == name:
                    line, node = key.start_mark.line, value
                    break
            else:
                return line
        elif isinstance(node, yaml.SequenceNode) and index and int(index) < len(node.value):
            node = node.value[int(index)]
            line = node.start_mark.line
        else:
            return line
    return line
