from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.specs.variables import resolve

plain = st.text(alphabet=st.characters(exclude_characters="$"))
trees = st.recursive(
    st.none() | st.booleans() | st.integers() | plain,
    lambda child: st.lists(child) | st.dictionaries(plain, child),
)


def test_variables_are_replaced_where_they_stand() -> None:
    spec = {"options": {"url": "jdbc:${HOST}:${PORT:-5432}"}, "list": ["${HOST}"], "n": 5}
    assert resolve(spec, {"HOST": "db"}, "spec") == (
        {"options": {"url": "jdbc:db:5432"}, "list": ["db"], "n": 5},
        [],
    )


def test_a_variable_that_is_not_set_is_a_problem_at_its_place() -> None:
    value, (problem,) = resolve({"a": [{"password": "${SECRET}"}]}, {}, "spec")
    assert value == {"a": [{"password": "${SECRET}"}]}
    assert (problem.code, problem.path) == ("unset_variable", "spec.a[0].password")
    assert "SECRET" in problem.message


def test_a_doubled_dollar_stands_for_itself() -> None:
    assert resolve("$${HOME} $5 ${}", {"HOME": "x"}) == ("${HOME} $5 ${}", [])


def test_what_a_variable_holds_is_not_looked_into() -> None:
    assert resolve("${A}", {"A": "${B}", "B": "x"}) == ("${B}", [])


@given(trees)
def test_text_without_variables_stays_as_it_is(tree: object) -> None:
    assert resolve(tree, {}) == (tree, [])
