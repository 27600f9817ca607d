import { SQLDialect } from "@codemirror/lang-sql";

/** Spark SQL, as far as highlighting and the completion of words need it. */
export const SPARK = SQLDialect.define({
  keywords:
    "select from where as and or not in is null like ilike rlike between case when then else end cast try_cast " +
    "union all except intersect values lateral view explode join inner left right full outer cross on using " +
    "with true false exists any some distinct interval date timestamp struct array map filter extend set drop " +
    "current_timestamp current_date escape at group by order having limit over partition asc desc",
  types:
    "boolean tinyint smallint int integer bigint float double decimal string binary date timestamp " +
    "timestamp_ntz array map struct variant interval void",
  identifierQuotes: "`",
  doubleQuotedStrings: true,
  backslashEscapes: true,
  operatorChars: "*+-%<>!=&|~^/",
  caseInsensitiveIdentifiers: true,
});
