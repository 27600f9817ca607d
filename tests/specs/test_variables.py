from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.specs.variables import no_secrets, refused, resolve, secrets_in

plain = st.text(alphabet=st.characters(exclude_characters="$"))
trees = st.recursive(
    st.none() | st.booleans() | st.integers() | plain,
    lambda child: st.lists(child) | st.dictionaries(plain, child),
)


def every(name: str) -> bool:
    return True


def test_variables_are_replaced_where_they_stand() -> None:
    spec = {"options": {"url": "jdbc:${HOST}:${PORT:-5432}"}, "list": ["${HOST}"], "n": 5}
    assert resolve(spec, {"HOST": "db"}, every, "spec") == (
        {"options": {"url": "jdbc:db:5432"}, "list": ["db"], "n": 5},
        [],
    )


def test_a_variable_that_is_not_set_is_a_problem_at_its_place() -> None:
    value, (problem,) = resolve({"a": [{"password": "${SECRET}"}]}, {}, every, "spec")
    assert value == {"a": [{"password": "${SECRET}"}]}
    assert (problem.code, problem.path) == ("unset_variable", "spec.a[0].password")
    assert "SECRET" in problem.message


def test_a_doubled_dollar_stands_for_itself() -> None:
    assert resolve("$${HOME} $5 ${}", {"HOME": "x"}, every) == ("${HOME} $5 ${}", [])


def test_what_a_variable_holds_is_not_looked_into() -> None:
    assert resolve("${A}", {"A": "${B}", "B": "x"}, every) == ("${B}", [])


@given(trees)
def test_text_without_variables_stays_as_it_is(tree: object) -> None:
    assert resolve(tree, {}, every) == (tree, [])


def test_a_variable_that_documents_may_not_use_is_a_problem_whether_it_is_set_or_not() -> None:
    spec = {"query": "SELECT '${PATH}', '${NOWHERE:-x}', '$${PATH}', '${MINE}'"}
    environment = {"PATH": "/bin", "MINE": "m"}
    value, problems = resolve(spec, environment, lambda name: name == "MINE", "spec")
    assert value == {"query": "SELECT '${PATH}', '${NOWHERE:-x}', '${PATH}', 'm'"}
    assert [(each.code, each.path) for each in problems] == [("variable_not_allowed", "spec.query")] * 2
    assert "policy.variables" in (problems[0].hint or "")
    assert refused(spec, lambda name: name == "MINE", "spec") == problems


def test_secrets_are_read_by_name_and_found_in_their_places() -> None:
    spec = {"a": "x${secret:my key}y", "b": ["$${secret:no}", "${secret:gone}"]}
    assert secrets_in(spec, "spec") == [("my key", "spec.a"), ("gone", "spec.b[1]")]

    def reads(name: str) -> str:
        return "VALUE ${PATH}" if name == "my key" else no_secrets(name)

    value, (problem,) = resolve(spec, {"PATH": "p"}, every, "spec", reads)
    assert value == {"a": "xVALUE ${PATH}y", "b": ["${secret:no}", "${secret:gone}"]}, "once, and no further"
    assert (problem.code, problem.path) == ("unknown_reference", "spec.b[1]")
