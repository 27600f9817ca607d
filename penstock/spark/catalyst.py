"""Spark's logical plans, built node by node.

Catalyst's classes are not a public interface of Spark. They are used only in this package; `tests/spark`
calls each function, so that a Spark version with a changed class fails there by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.spark import plans
from penstock.spark.java_classes import java_class

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

TREES = Path(__file__).with_name("java") / "Trees.java"


class Catalyst:
    """Creates nodes and expressions for one session."""

    def __init__(self, session: Any) -> None:
        self.session, self.jvm = session, session._jvm
        self.logical = self.jvm.org.apache.spark.sql.catalyst.plans.logical
        self.expressions = self.jvm.org.apache.spark.sql.catalyst.expressions
        self._utils = self.jvm.org.apache.spark.sql.classic.ExpressionUtils

    # Between texts, frames and plans

    def parser(self) -> Any:
        """Catalyst's own parser under the settings of the session."""
        self.activate()  # it reads its settings, such as ANSI mode, from the thread's active session
        return self.jvm.org.apache.spark.sql.catalyst.parser.CatalystSqlParser()

    def activate(self) -> None:
        """Make the session the active one of the thread, which Spark uses for lookups."""
        self.jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(self.session._jsparkSession)

    def frame(self, plan: Any) -> DataFrame:
        """The frame of a plan."""
        from pyspark.sql import DataFrame

        dataset = self.jvm.org.apache.spark.sql.classic.Dataset
        return DataFrame(dataset.ofRows(self.session._jsparkSession, plan), self.session)

    def column(self, expression: Any) -> Column:
        """An expression as a column."""
        from pyspark.sql import Column

        return Column(self._utils.column(expression))

    def expression(self, column: Any) -> Any:
        """A column as an expression."""
        return self._utils.expression(column._jc)

    def parsed(self, node: Any) -> plans.Node:
        """A parsed plan or expression, with all nodes that it was built from."""
        return plans.nodes(self._trees.parsed(node))[0]

    def tree(self, node: Any) -> plans.Node:
        """A resolved plan or expression, down to the views that it reads."""
        return self.trees([node])[0]

    def trees(self, nodes: Any) -> list[plans.Node]:
        """Resolved plans or expressions, from a Scala sequence or a list."""
        seq = self.seq(nodes) if isinstance(nodes, list) else nodes
        count = int(seq.size())
        return plans.nodes(self._trees.resolved(seq))[:count]

    @property
    def _trees(self) -> Any:
        return java_class(self.session, TREES)

    def inlined(self, plan: Any) -> Any:
        """The plan without common table expressions: each use has its own copy."""
        pattern = self.jvm.org.apache.spark.sql.catalyst.trees.TreePattern.CTE()
        if plans.name(plan) == "WithCTE" or plan.containsPattern(pattern):
            return self.jvm.org.apache.spark.sql.catalyst.optimizer.InlineCTE(True, False, False).apply(plan)
        return plan

    # Columns, as Scala sequences: extracting and inserting them would take two calls for each

    def output(self, plan: Any) -> Any:
        """The output columns of a plan, without the names of their tables."""
        return self._trees.output(plan)

    def output_named(self, plan: Any, name: str) -> Any:
        """The output column of a plan with a name."""
        return self._trees.column(plan, name)

    def united(self, wanted: Any, others: Any) -> Any:
        """Named expressions, followed by those of `others` that are not among them."""
        return self._trees.united(wanted, others)

    # Nodes

    def project(self, wanted: Any, below: Any) -> Any:
        """A projection of expressions, which are a Scala sequence or a list."""
        return self.logical.Project(self.seq(wanted) if isinstance(wanted, list) else wanted, below)

    def filter(self, condition: Any, below: Any) -> Any:
        """A condition over rows."""
        return self.logical.Filter(condition, below)

    def union(self, sides: Sequence[Any]) -> Any:
        """The rows of several plans, column by column."""
        return self.logical.Union(self.seq(sides), False, False)

    def expand(self, rows: Iterable[Sequence[Any]], output: Sequence[Any], below: Any) -> Any:
        """Several output rows for each input row."""
        return self.logical.Expand(self.seq([self.seq(row) for row in rows]), self.seq(output), below)

    def generate(self, generator: Any, output: Any, below: Any, *, outer: bool = True) -> Any:
        """The rows that a generator produces per row; with `outer`, a row of NULLs if it produces none."""
        none = self.jvm.scala.Option.empty()
        return self.logical.Generate(generator, self.seq([]), outer, none, output, below)

    def join(self, left: Any, right: Any, kind: str, condition: Any | None, like: Any) -> Any:
        """A join of the kind `LeftOuter`, `RightOuter` and so on, with the hint of another join."""
        made = getattr(getattr(self.jvm.org.apache.spark.sql.catalyst.plans, f"{kind}$"), "MODULE$")
        return self.logical.Join(left, right, made, self.option(condition), like.hint())

    # Expressions

    def alias(self, expression: Any, name: str) -> Any:
        """An expression under a name, as a new column."""
        none = self.jvm.scala.Option.empty()
        fresh = self.expressions.NamedExpression.newExprId()
        return self.expressions.Alias(expression, name, fresh, self.seq([]), none, self.seq([]))

    def alias_like(self, expression: Any, named: Any) -> Any:
        """An expression with the name and the id of another one."""
        return self.expressions.Alias(
            expression, named.name(), named.exprId(), named.qualifier(),
            self.option(named.metadata()), self.seq([]),
        )  # fmt: skip

    def struct(self, fields: Iterable[tuple[str, Any]]) -> Any:
        """A struct."""
        return self.expressions.CreateNamedStruct(
            self.seq([part for name, value in fields for part in (self.literal(name), value)])
        )

    def field(self, struct: Any, ordinal: int) -> Any:
        """A field of a struct, by its number."""
        return self.expressions.GetStructField(struct, ordinal, self.jvm.scala.Option.empty())

    def tried(self, expression: Any) -> Any:
        """An expression, or NULL if it fails."""
        return self.expressions.TryEval(expression)

    def to_json(self, struct: Any, options: Mapping[str, str]) -> Any:
        """A struct as JSON."""
        zone = self.option(self.session.conf.get("spark.sql.session.timeZone"))
        return self.expressions.StructsToJson(self.jvm.PythonUtils.toScalaMap(dict(options)), struct, zone)

    def either(self, one: Any, other: Any) -> Any:
        """Whether one of two conditions is true."""
        return self.expressions.Or(one, other)

    def both(self, one: Any, other: Any) -> Any:
        """Whether both of two conditions are true."""
        return self.expressions.And(one, other)

    def negated(self, condition: Any) -> Any:
        """Whether a condition is false."""
        return self.expressions.Not(condition)

    def is_null(self, expression: Any) -> Any:
        """Whether a value is NULL."""
        return self.expressions.IsNull(expression)

    def equal(self, one: Any, other: Any) -> Any:
        """Whether two values are equal."""
        return self.expressions.EqualTo(one, other)

    def when(self, condition: Any, value: Any, otherwise: Any) -> Any:
        """One of two values."""
        return self.expressions.If(condition, value, otherwise)

    def has_elements(self, collection: Any) -> Any:
        """Whether an array or a map is neither NULL nor empty."""
        return self.expressions.GreaterThan(self.expressions.Size(collection, False), self.literal(0))

    def invoked(self, target: Any, method: str, kind: Any, *arguments: Any) -> Any:
        """The result of a method of a serializable Java object, called once per row; NULL for a NULL."""
        of = self.jvm.org.apache.spark.sql.types.ObjectType(target.getClass())
        literal = self.expressions.Literal(target, of)
        none = self.seq([])
        # Declared as not deterministic: otherwise Spark would call it again for each column of the result.
        return self.expressions.objects.Invoke(
            literal, method, kind, self.seq(arguments), none, True, True, False
        )

    def type_of(self, schema: Any) -> Any:
        """A PySpark type as a JVM type."""
        return self.jvm.org.apache.spark.sql.types.DataType.fromJson(schema.json())

    def literal(self, value: Any) -> Any:
        """A constant."""
        return getattr(getattr(self.expressions, "Literal$"), "MODULE$").apply(value)

    def null(self, kind: Any) -> Any:
        """A NULL of a type."""
        return self.expressions.Literal(None, kind)

    def no_text(self) -> Any:
        """A NULL of type string."""
        return self.null(self.jvm.org.apache.spark.sql.types.DataTypes.StringType)

    def attribute(self, named: Any) -> Any:
        """The column of a named expression, which other expressions may refer to."""
        return named.toAttribute()

    def replaced(self, expression: Any, replace: Callable[[Any], Any | None]) -> Any:
        """An expression whose parts are replaced, from the top down, if `replace` returns another one."""
        if (other := replace(expression)) is not None:
            return other
        children = list(plans.elements(expression.children()))
        if not children:
            return expression
        changed = [self.replaced(child, replace) for child in children]
        return expression.withNewChildren(self.seq(changed))

    # Scala's own

    def seq(self, items: Sequence[Any]) -> Any:
        """A Scala sequence."""
        return self.jvm.PythonUtils.toSeq(list(items))

    def option(self, value: Any | None) -> Any:
        """A Scala option: some value, or none."""
        option = self.jvm.scala.Option
        return option.empty() if value is None else option.apply(value)


def resolved(df: Any) -> Any:
    """The plan that Spark has resolved for a frame."""
    return df._jdf.queryExecution().analyzed()


def optimised(df: Any) -> Any:
    """The plan of a frame after Spark's optimizer."""
    return df.sparkSession._jsparkSession.sessionState().optimizer().execute(resolved(df))


def has_watermark(df: Any) -> bool:
    """Whether a watermark was set for a frame."""
    pattern = df.sparkSession._jvm.org.apache.spark.sql.catalyst.trees.TreePattern.EVENT_TIME_WATERMARK()
    return bool(resolved(df).containsPattern(pattern))


def id_of(named: Any) -> int:
    """The id of a column in a plan."""
    return int(named.exprId().id())
