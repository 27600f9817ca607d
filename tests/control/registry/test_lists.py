import pytest
from sqlalchemy import update

from penstock.control.registry import Page, Registry, tables
from penstock.errors import Invalid
from tests.control.registry.kit import only_problem, pipeline, stream


def names(page: Page) -> list[str]:
    return [record.name for record in page.items]


@pytest.fixture
def streams(registry: Registry) -> Registry:
    registry.create(stream("beta", description="Zahlungen ÄÖ 100%", labels={"env": "prod", "a.b/c": "1"}))
    registry.create(stream("Alpha", description="orders", labels={"env": "dev"}))
    registry.create(stream("gamma ray", labels={"env": "prod", 'quo"te': "=x=y"}))
    registry.create(stream("delta_1"))
    return registry


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("ORDERS", ["Alpha"]),
        ("ET", ["beta"]),
        ("a r", ["gamma ray"]),
        ("A_R", ["gamma ray"]),
        ("zahlungen äö", ["beta"]),
        ("%", ["beta"]),
        ("_", ["delta_1", "gamma ray"]),
        ("\\", []),
        ("\0", []),
        ("\ud800", []),
        ("", ["Alpha", "beta", "delta_1", "gamma ray"]),
    ],
)
def test_search_looks_in_name_id_and_description(streams: Registry, text: str, found: list[str]) -> None:
    assert names(streams.list("Stream", search=text)) == found


@pytest.mark.parametrize(
    ("label", "found"),
    [
        (["env"], ["Alpha", "beta", "gamma ray"]),
        (["env=prod"], ["beta", "gamma ray"]),
        (["env=prod", "a.b/c"], ["beta"]),
        (["a.b/c=1"], ["beta"]),
        (['quo"te==x=y'], ["gamma ray"]),
        (["env="], []),
        (["none"], []),
        (["\0"], []),
        (["env=\ud800"], []),
    ],
)
def test_labels_filter_by_key_or_by_key_and_value(
    streams: Registry, label: list[str], found: list[str]
) -> None:
    assert names(streams.list("Stream", label=label)) == found


def test_an_update_replaces_what_is_searched(streams: Registry) -> None:
    streams.update("Stream", "beta", stream("Beta", description="other", labels={"x": "y"}))
    assert names(streams.list("Stream", search="other")) == ["Beta"]
    assert names(streams.list("Stream", search="zahlungen")) == []
    assert names(streams.list("Stream", label=["env=prod"])) == ["gamma ray"]


def test_sorting(streams: Registry) -> None:
    streams.update("Stream", "alpha", stream("Alpha"))
    by_name = ["Alpha", "beta", "delta_1", "gamma ray"]
    assert names(streams.list("Stream")) == names(streams.list("Stream", sort="id")) == by_name
    assert names(streams.list("Stream", sort="-name")) == by_name[::-1]
    assert names(streams.list("Stream", sort="created")) == ["beta", "Alpha", "gamma ray", "delta_1"]
    assert names(streams.list("Stream", sort="-updated")) == ["Alpha", "delta_1", "gamma ray", "beta"]
    assert names(streams.list("Stream", sort="status")) == by_name
    with pytest.raises(Invalid) as caught:
        streams.list("Stream", sort="nmae")
    assert only_problem(caught.value).hint == "did you mean 'name'?"


def test_ids(streams: Registry) -> None:
    assert streams.ids("Stream") == {"alpha", "beta", "delta_1", "gamma_ray"}
    assert streams.ids("Sink") == set()


def test_pages_cover_everything_once(registry: Registry) -> None:
    for i in range(23):
        registry.create(stream(f"s{i:02}"))
    pages = [registry.list("Stream", sort="status", limit=5, offset=offset) for offset in range(0, 25, 5)]
    assert [name for page in pages for name in names(page)] == [f"s{i:02}" for i in range(23)]
    assert {page.total for page in pages} == {23}
    assert registry.list("Stream", limit=5, offset=100) == Page([], 23)
    assert len(registry.list("Stream", limit=None).items) == 23
    assert registry.list("Sink") == Page([], 0)


def test_pipelines_filter_and_sort_by_status(registry: Registry) -> None:
    registry.create(stream("s"))
    for name, desired, outcome in (
        ("a", "active", None),
        ("b", "active", "failed"),
        ("c", "paused", "failed"),
        ("d", "stopped", None),
        ("e", "active", "completed"),
    ):
        registry.create(pipeline(name, "s"), desired=desired)
        with registry.begin() as conn:
            conn.execute(update(tables.flows).where(tables.flows.c.id == name).values(outcome=outcome))
    assert names(registry.list("Pipeline", sort="status")) == ["a", "e", "b", "c", "d"]
    for status, found in (
        ("active", "a"),
        ("failed", "b"),
        ("paused", "c"),
        ("stopped", "d"),
        ("completed", "e"),
    ):
        page = registry.list("Pipeline", status=status)
        assert names(page) == [found]
        assert page.total == 1
        assert page.items[0].flow.status == status  # type: ignore[union-attr]
    assert names(registry.list("Stream", status="active")) == []
