from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from penstock.spark import plans
from penstock.sql import functions
from penstock.sql.frames import column, run_query
from tests.sql.helpers import refusal

FORBIDDEN = {
    # Java, whatever the place it is called from
    "SELECT reflect('java.lang.System', 'getenv', 'HOME') FROM input": "reflect() is not allowed",
    "SELECT java_method('java.lang.System', 'exit', 1) FROM input": "java_method() is not allowed",
    "SELECT try_reflect('java.lang.System', 'getenv', 'HOME') FROM input": "try_reflect() is not allowed",
    "SELECT `REFLECT`('a', 'b') FROM input": "reflect() is not allowed",
    "SELECT a FROM input WHERE b = upper(concat(b, reflect('a', 'b')))": "reflect()",
    "SELECT transform(arr, x -> transform(arr, y -> reflect('a', x))) FROM input": "reflect()",
    "SELECT CASE WHEN a = 1 THEN 1 ELSE reflect('a', 'b') END FROM input": "reflect()",
    "SELECT * FROM VALUES (reflect('a', 'b')) t, input": "reflect()",
    "SELECT a FROM input, LATERAL (SELECT reflect('a', b))": "reflect()",
    "SELECT a FROM input LATERAL VIEW explode(array(reflect('a', 'b'))) t AS x": "reflect()",
    "SELECT a FROM input LATERAL VIEW reflect('a', 'b') t AS x": "reflect()",
    "SELECT a FROM input, LATERAL explode(array(reflect('a', 'b')))": "reflect()",
    "SELECT a FROM input JOIN VALUES (1) t(k) ON k = reflect('a', 'b')": "reflect()",
    "SELECT a FROM input GROUP BY GROUPING SETS ((a), (reflect('a', 'b')))": "reflect()",
    "SELECT a FROM input ORDER BY reflect('a', 'b')": "reflect()",
    "SELECT a FROM input LIMIT reflect('a', 'b')": "reflect()",
    "SELECT a FROM input QUALIFY reflect('a', 'b')": "reflect()",
    "SELECT sum(a) FILTER (WHERE reflect('a', 'b')) FROM input": "reflect()",
    "SELECT sum(a) OVER (PARTITION BY reflect('a', 'b')) FROM input": "reflect()",
    "SELECT sum(a) OVER w FROM input WINDOW w AS (PARTITION BY reflect('a', 'b'))": "reflect()",
    "SELECT * FROM input PIVOT (max(a) FOR b IN ('x')) WHERE reflect('a', 'b')": "reflect()",
    "SELECT * FROM input UNPIVOT (v FOR n IN (a)) WHERE reflect('a', 'b')": "reflect()",
    "SELECT /*+ REPARTITION(2, reflect('a', 'b')) */ a FROM input": "reflect()",
    "WITH q AS (SELECT reflect('a', 'b')) SELECT a FROM input": "reflect()",
    "SELECT a FROM input WHERE EXISTS (SELECT 1 WHERE reflect('a', 'b'))": "reflect()",
    "SELECT a FROM input WHERE a IN (WITH q AS (SELECT reflect('a')) SELECT 1)": "reflect()",
    "SELECT (SELECT reflect('a', 'b')) FROM input": "reflect()",
    "FROM input |> SET a = reflect('a', 'b')": "reflect()",
    "FROM input |> EXTEND reflect('a', 'b') AS z": "reflect()",
    "FROM input |> WHERE reflect('a', 'b') |> SELECT a": "reflect()",
    # files as tables
    "SELECT * FROM json.`/etc/x`": "table json./etc/x is not allowed",
    "SELECT a FROM input WHERE a IN (SELECT * FROM csv.`/etc/passwd`)": "csv./etc/passwd",
    "SELECT (SELECT max(value) FROM text.`/etc/passwd`) FROM input": "text./etc/passwd",
    "SELECT a FROM input JOIN parquet.`/x` ON true": "parquet./x",
    "SELECT a FROM input, LATERAL (SELECT * FROM orc.`/x`)": "orc./x",
    "WITH q AS (SELECT * FROM binaryFile.`/x`) SELECT a FROM input": "binaryFile./x",
    "SELECT a FROM input UNION ALL SELECT value FROM text.`/x`": "text./x",
    "FROM input |> UNION ALL TABLE text.`/x`": "text./x",
    "FROM input |> JOIN text.`/x` ON true": "text./x",
    "TABLE text.`/x`": "text./x",
    "SELECT * FROM IDENTIFIER('text.`/x`')": "text./x",
    # other catalogs and sessions
    "SELECT * FROM global_temp.shared": "table global_temp.shared is not allowed",
    "SELECT * FROM spark_catalog.default.input": "spark_catalog.default.input",
    "SELECT * FROM default.input": "default.input",
    "SELECT * FROM system.session.input": "system.session.input",
    "SELECT * FROM session.input": "session.input",
    "SELECT * FROM input WITH ('path' = '/etc')": "options of a table",
    "SELECT * FROM input VERSION AS OF 1": "VERSION AS OF",
    "SELECT * FROM input TIMESTAMP AS OF '2024-01-01'": "TIMESTAMP AS OF",
    "SELECT * FROM input CHANGES FROM VERSION 1": "CHANGES",
    "SELECT * FROM STREAM input": "STREAM is not allowed",
    "SELECT a FROM input WATERMARK ts DELAY OF INTERVAL 1 MINUTE": "WATERMARK",
    "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) SELECT a FROM input, r": "RECURSIVE",
    # functions by other ways
    "SELECT system.builtin.upper(b) FROM input": "system.builtin.upper() is not allowed",
    "SELECT builtin.reflect('a', 'b') FROM input": "builtin.reflect() is not allowed",
    "SELECT spark_catalog.default.f(b) FROM input": "spark_catalog.default.f() is not allowed",
    "SELECT a FROM input LATERAL VIEW session.f(b) t AS x": "session.f() is not allowed",
    "SELECT IDENTIFIER('reflect')('a', 'b') FROM input": "IDENTIFIER() is not allowed",
    "SELECT IDENTIFIER('re' || 'flect')('a', 'b') FROM input": "IDENTIFIER() is not allowed",
    "SELECT * FROM IDENTIFIER('text.' || '`/x`')": "IDENTIFIER() is not allowed",
    "SELECT * FROM python_worker_logs()": "table function python_worker_logs()",
    "SELECT * FROM read_files('/etc')": "table function read_files()",
    "SELECT * FROM sql_keywords()": "table function sql_keywords()",
    "SELECT * FROM system.builtin.range(3)": "table function system.builtin.range()",
    "SELECT * FROM f(TABLE(input))": "table function f()",
    "SELECT * FROM explode(TABLE(SELECT * FROM text.`/x`))": "TABLE argument",
    "SELECT from_protobuf(b, 'M', '/etc/passwd') FROM input": "descriptor file",
    "SELECT to_protobuf(s, 'M', '/etc/passwd') FROM input": "descriptor file",
    "SELECT from_xml(b, 'x INT', map('rowValidationXSDPath', '/etc/x')) FROM input": "rowValidationXSDPath",
    "SELECT from_xml(b, 'x INT', map('ROWvalidationxsdpath', '/etc/x')) FROM input": "ROWvalidationxsdpath",
    "SELECT from_xml(b, 'x INT', map('rowVali' 'dationXSDPath', '/x')) FROM input": "rowValidationXSDPath",
    "SELECT from_xml(b, 'x INT', map(concat('rowVali', 'dationXSDPath'), '/x')) FROM input": "plain text",
    "SELECT to_json(s, map('dateFormat', current_user)) FROM input": "plain text",
    "SELECT from_json(b, schema_of_json(concat('{\"', current_user, '\": 1}'))) FROM input": "schema of",
    "SELECT from_json(b, secret_variable) FROM input": "schema of",
    "SELECT from_xml(b, 'x INT', str_to_map('rowValidationXSDPath:/x')) FROM input": "given as map(",
    "SELECT from_xml(b, 'x INT', options => map('rowValidationXSDPath', '/x')) FROM input": "given as map(",
    "SELECT schema_of_xml('<a/>', map('rowValidationXSDPath', '/etc/x')) FROM input": "rowValidationXSDPath",
    "SELECT from_xml(b, schema_of_xml('<a/>', map('rowValidationXSDPath', '/x'))) FROM input": "XSDPath",
    "SELECT from_avro(b, '\"int\"', map('avroSchemaUrl', 'http://x')) FROM input": "avroSchemaUrl",
    "SELECT schema_of_avro('\"int\"', map('avroSchemaUrl', 'http://x')) FROM input": "avroSchemaUrl",
    "SELECT from_json(b, concat('{', '}')) FROM input": "schema of from_json()",
    "SELECT from_csv(b, '  {}') FROM input": "schema of from_csv()",
    # what is known about the worker
    "SELECT current_user() FROM input": "current_user() is not allowed",
    "SELECT current_user FROM input": "current_user is not allowed",
    "SELECT session_user FROM input": "is not allowed",
    "SELECT user() FROM input": "user() is not allowed",
    "SELECT :p FROM input": "parameter marker",
    "SELECT ? FROM input": "parameter marker",
    # programs and commands
    "SELECT TRANSFORM(a) USING 'cat' AS (b) FROM input": "it runs a program",
    "FROM input MAP a USING 'cat' AS (b)": "it runs a program",
    "SELECT * FROM (SELECT TRANSFORM(a) USING 'cat' AS (b) FROM input)": "it runs a program",
    "BEGIN SELECT a FROM input; END": "BEGIN",
    "EXECUTE IMMEDIATE 'SELECT 1'": "EXECUTE IMMEDIATE",
    "CALL system.p()": "CALL is not allowed",
    "CREATE TABLE t (a INT)": "CREATE TABLE is not allowed",
    "CREATE TABLE t AS SELECT * FROM input": "CREATE TABLE AS SELECT",
    "CREATE TEMPORARY VIEW v AS SELECT * FROM input": "only a query",
    "CREATE FUNCTION f AS 'x.Y'": "only a query",
    "DROP TABLE t": "DROP TABLE is not allowed",
    "DROP VIEW input": "DROP VIEW is not allowed",
    "INSERT INTO t SELECT * FROM input": "INSERT",
    "FROM input INSERT INTO t SELECT a": "INSERT",
    "INSERT OVERWRITE DIRECTORY '/tmp/x' USING csv SELECT * FROM input": "only a query",
    "DELETE FROM t": "DELETE FROM TABLE is not allowed",
    "UPDATE t SET a = 1": "UPDATE TABLE is not allowed",
    "MERGE INTO t USING input ON true WHEN MATCHED THEN DELETE": "MERGE INTO TABLE is not allowed",
    "DECLARE x INT": "CREATE VARIABLE is not allowed",
    "SET VAR x = 1": "SET VARIABLE is not allowed",
    "SET spark.sql.ansi.enabled = false": "only a query",
    "RESET": "only a query",
    "SHOW TABLES": "SHOW TABLES is not allowed",
    "SHOW FUNCTIONS": "SHOW FUNCTIONS is not allowed",
    "DESCRIBE TABLE input": "only a query",
    "DESCRIBE FUNCTION upper": "is not allowed",
    "EXPLAIN SELECT * FROM input": "only a query",
    "CACHE TABLE input": "CACHE TABLE is not allowed",
    "REFRESH TABLE input": "REFRESH TABLE is not allowed",
    "REFRESH '/tmp'": "only a query",
    "ADD JAR '/tmp/x.jar'": "only a query",
    "LIST FILES": "only a query",
    "USE default": "SET CATALOG AND NAMESPACE is not allowed",
    "LOAD DATA INPATH '/x' INTO TABLE t": "LOAD DATA is not allowed",
    "ANALYZE TABLE input COMPUTE STATISTICS": "ANALYZE TABLE is not allowed",
    "TRUNCATE TABLE t": "TRUNCATE TABLE is not allowed",
}


@pytest.mark.parametrize("query", FORBIDDEN)
def test_query_that_reaches_outside_is_refused(events: DataFrame, query: str) -> None:
    problem = refusal(run_query, events, query)
    assert (problem.code, problem.path) == ("sql_forbidden", "query")
    assert FORBIDDEN[query] in problem.message


@pytest.mark.parametrize(
    "text",
    [
        "reflect('a', 'b')",
        "exists(arr, x -> reflect('a', x) = '1')",
        "a IN (SELECT 1)",
        "EXISTS (SELECT * FROM text.`/etc/passwd`)",
        "(SELECT max(value) FROM text.`/etc/passwd`)",
        "current_user",
        "IDENTIFIER('a')",
        "IDENTIFIER('re' || 'flect')('a')",
        ":p",
        "session.f(a)",
        "explode(arr)",
        "from_xml(b, 'x INT', map('rowValidationXSDPath', '/etc/x'))",
    ],
)
def test_expression_that_reaches_outside_is_refused(events: DataFrame, text: str) -> None:
    problem = refusal(column, events, text, field="where")
    assert (problem.code, problem.path) == ("sql_forbidden", "where")


JSON_SCHEMA = {
    "type": "struct",
    "fields": [
        {"name": "x", "type": "string", "nullable": True, "metadata": {"EXISTS_DEFAULT": "version()"}},
    ],
}


def test_schema_as_json_could_run_expressions(events: DataFrame) -> None:
    text = json.dumps(JSON_SCHEMA)
    events.selectExpr(f"from_json('{{}}', '{text}')")  # Spark itself would take it
    assert (
        refusal(run_query, events, f"SELECT from_json(b, '{text}') AS x FROM input").code == "sql_forbidden"
    )


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM secret",
        "SELECT * FROM `text.x`",
        "SELECT a FROM input WHERE a IN (SELECT * FROM secret)",
        "SELECT * FROM (WITH q AS (SELECT 1 AS x) SELECT * FROM q) z, q",
        "WITH q AS (SELECT * FROM q) SELECT * FROM q",
        "WITH p AS (SELECT * FROM q), q AS (SELECT * FROM input) SELECT * FROM p",
        "SELECT a FROM input WHERE a IN (WITH q AS (SELECT 1) SELECT * FROM q) AND a IN (SELECT * FROM q)",
        "WITH secret2 AS (SELECT * FROM secret) SELECT * FROM secret2",
    ],
)
def test_only_the_input_and_what_with_defines_are_tables(events: DataFrame, query: str) -> None:
    problem = refusal(run_query, events, query)
    assert problem.code == "unknown_table"
    assert "'input'" in problem.message


@pytest.fixture
def neighbours(spark: SparkSession) -> Iterator[None]:
    """What somebody else may have left in the same session."""
    spark.range(1).createOrReplaceTempView("secret")
    spark.range(1).createOrReplaceGlobalTempView("shared")
    spark.udf.register("leak", lambda: "leaked")
    spark.udf.register("upper", lambda _: "leaked")
    spark.sql("DECLARE OR REPLACE secret_variable STRING DEFAULT 'leaked'")
    yield
    spark.catalog.dropTempView("secret")
    spark.catalog.dropGlobalTempView("shared")
    spark.sql("DROP TEMPORARY FUNCTION leak")
    spark.sql("DROP TEMPORARY FUNCTION upper")
    spark.sql("DROP TEMPORARY VARIABLE secret_variable")


@pytest.mark.usefixtures("neighbours")
def test_what_others_left_in_the_session_is_out_of_reach(events: DataFrame) -> None:
    assert refusal(run_query, events, "SELECT * FROM secret").code == "unknown_table"
    assert refusal(run_query, events, "SELECT * FROM global_temp.shared").code == "sql_forbidden"
    assert refusal(run_query, events, "SELECT leak() FROM input").code == "unknown_function"
    assert refusal(column, events, "leak()", field="f").code == "unknown_function"
    for name in ("secret_variable", "session.secret_variable", "system.session.secret_variable"):
        problem = refusal(run_query, events, f"SELECT {name} FROM input")
        assert "session variables are not allowed" in problem.message
        assert refusal(column, events, name, field="f").code == "sql_forbidden"
    for table in (
        "VALUES (secret_variable) t(k)",
        "range(secret_variable)",
        "VALUES (upper(current_user)) t",
    ):
        problem = refusal(run_query, events, f"SELECT * FROM input, {table}")
        assert "cannot be used here" in problem.message
    assert [r[0] for r in run_query(events, "SELECT upper(b) FROM input").collect()] == ["X", "Y"]


def test_secrets_are_not_put_into_the_text(spark: SparkSession, events: DataFrame) -> None:
    """`spark.sql` and `expr` replace ${…} by environment variables and settings before they parse."""
    text = "'${env:HOME} ${spark.app.name} ${system:user.home}'"
    assert "${" not in spark.sql(f"SELECT {text}").first()[0]  # type: ignore[index]
    expected = text.strip("'")
    assert {r[0] for r in run_query(events, f"SELECT {text} AS x FROM input").collect()} == {expected}
    assert {r[0] for r in events.select(column(events, text, field="f")).collect()} == {expected}


def test_every_function_of_this_spark_was_looked_at(spark: Any) -> None:
    known = functions.builtin(spark._jvm)
    assert functions.DENIED.keys() <= known
    assert len(known) == 581, "another Spark: look through its new functions, then correct the number"
    registry = spark._jvm.org.apache.spark.sql.catalyst.analysis.TableFunctionRegistry
    tables = {f.funcName() for f in plans.elements(registry.functionSet())}
    assert tables - functions.TABLE_FUNCTIONS == {"collations", "python_worker_logs", "sql_keywords"}
    assert tables >= functions.TABLE_FUNCTIONS


def test_every_option_that_opens_something_is_denied(spark: Any) -> None:
    options: set[str] = set()
    for name in (
        "catalyst.xml.XmlOptions",
        "catalyst.json.JSONOptions",
        "catalyst.csv.CSVOptions",
        "avro.AvroOptions",
    ):
        companion = spark._jvm.java.lang.Class.forName(f"org.apache.spark.sql.{name}$")
        options |= {
            o.lower() for o in plans.elements(companion.getField("MODULE$").get(None).getAllOptions())
        }
    assert {o for o in options if any(word in o for word in ("path", "url", "file", "dir"))} == set(
        functions.DENIED_OPTIONS
    )
