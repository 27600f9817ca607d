"""How the commits of a table become micro-batches and tasks."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from penstock.connectors.tables.commits import ALL, Commits, DataFile, Plan, beginning

Files = list[list[int]]
"""By commit, the number of rows in each file that it adds."""


class Listed(Commits):
    """Commits that only append, with ids that are not in their order."""

    def __init__(self, files: Files) -> None:
        self.all = {
            7919 * (i + 1) % 10007: [DataFile(f"{i}-{j}", n) for j, n in enumerate(commit)]
            for i, commit in enumerate(files)
        }
        self.known = len(files)

    @property
    def ids(self) -> list[int]:
        return list(self.all)[: self.known]

    def refresh(self) -> None:
        self.known = len(self.all)

    def newest(self) -> int | None:
        return self.ids[-1] if self.ids else None

    def has(self, commit: int) -> bool:
        return commit in self.ids

    def after(self, commit: int | None) -> Sequence[int]:
        return self.ids if commit is None else self.ids[self.ids.index(commit) + 1 :]

    def before(self, milliseconds: int) -> int | None:
        return self.ids[milliseconds - 1] if milliseconds else None

    def added(self, commit: int) -> list[DataFile]:
        return self.all[commit]

    def files(self, commit: int) -> list[DataFile]:
        ids = self.ids[: self.ids.index(commit) + 1]
        return sorted((file for each in ids for file in self.all[each]), key=lambda file: file.path)


COMMITS = st.lists(st.lists(st.integers(0, 30), max_size=4), max_size=6)


@given(COMMITS, st.data(), st.integers(1, 60), st.integers(1, 30))
def test_each_file_is_read_once(files: Files, data: st.DataObject, limit: int, task: int) -> None:
    """From any position, with new commits on the way and a new plan after each batch, as after a crash."""
    commits = Listed(files)
    commits.known = data.draw(st.integers(0, len(files)), "commits at the start")
    positions = ["earliest", "latest", *(f"version:{each}" for each in commits.ids)]
    positions += [f"time:{i}" for i in range(commits.known + 1)]
    position = data.draw(st.sampled_from(positions), "position")
    offset = beginning(commits, position)
    first = {"earliest": 0, "latest": commits.known}.get(position)
    if first is None:
        kind, _, value = position.partition(":")
        first = commits.ids.index(int(value)) if kind == "version" else int(value)
    wanted = [file for commit in list(commits.all.values())[first:] for file in commit]

    read: list[DataFile] = []
    assert Plan(commits, limit, task).behind(offset) == sum(
        file.events for commit in list(commits.all.values())[first : commits.known] for file in commit
    )
    while True:
        end = Plan(commits, limit, task).latest(offset)
        if end == offset:
            if commits.known == len(commits.all):
                break
            commits.refresh()
            continue
        batch = Plan(commits, limit, task).between(offset, end)
        found = [file for part in batch for file in part]
        assert sum(file.events for file in found[:-1]) < limit, "a micro-batch is too large"
        assert all(sum(file.events for file in part[:-1]) < task for part in batch), "a task is too large"
        read += found
        offset = end
    assert sorted(file.path for file in read) == sorted(file.path for file in wanted)


def test_a_finite_reader_ends_where_the_table_ended() -> None:
    commits = Listed([[10], [10], [10]])
    commits.known = 2
    until = commits.newest()
    offset = beginning(commits, "earliest")
    commits.refresh()
    plan = Plan(commits, 10, 10)
    ends = []
    while (end := plan.latest(offset, until)) != offset:
        ends.append([file.path for part in plan.between(offset, end) for file in part])
        offset = end
    assert ends == [["0-0"], ["1-0"]]
    assert offset["files"] == ALL
