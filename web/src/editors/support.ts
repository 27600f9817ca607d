import { autocompletion, type CompletionSource } from "@codemirror/autocomplete";
import { javascript, javascriptLanguage } from "@codemirror/lang-javascript";
import { json } from "@codemirror/lang-json";
import { keywordCompletionSource, schemaCompletionSource } from "@codemirror/lang-sql";
import { yaml } from "@codemirror/lang-yaml";
import type { Extension } from "@codemirror/state";
import { columnOption, functionOption, notInNumbers, scriptSource } from "./completions";
import type { SqlFunction } from "./functions";
import type { Column, Language } from "./language";
import { SPARK } from "./spark";

/** Highlighting and completion of a language. */
export function support(
  language: Language,
  columns: Column[],
  functions: SqlFunction[],
  tables?: Record<string, Column[]>,
): Extension {
  switch (language) {
    case "sql":
      return [autocompletion(), spark(columns, functions, tables)];
    case "javascript":
      return [
        autocompletion(),
        javascript(),
        javascriptLanguage.data.of({ autocomplete: notInNumbers(scriptSource(columns)) }),
      ];
    case "yaml":
      return yaml();
    case "json":
      return json();
    case "text":
      return [];
  }
}

function spark(
  columns: Column[],
  functions: SqlFunction[],
  tables: Record<string, Column[]> = { input: columns },
): Extension {
  // The columns of `input` are offered as those of the default table; those of other tables as words.
  const words = tables.input === columns ? [] : columns.map(columnOption);
  const options = [...functions.map(functionOption), ...words];
  const known = {
    dialect: SPARK,
    // A dot in the name of a table would be read as the name of a schema.
    schema: Object.fromEntries(
      Object.entries(tables).map(([name, own]) => [name.replaceAll(".", "\\."), own.map(columnOption)]),
    ),
    defaultTable: "input" in tables ? "input" : undefined,
    upperCaseKeywords: true,
  };
  const sources: CompletionSource[] = [
    schemaCompletionSource(known),
    keywordCompletionSource(SPARK, true),
    (context) => {
      const word = context.matchBefore(/[\w]+/);
      if (!word && !context.explicit) return null;
      // What follows a dot is a field, never a function.
      const before = context.state.sliceDoc(Math.max(0, (word?.from ?? context.pos) - 1), word?.from);
      if (before === ".") return null;
      return { from: word?.from ?? context.pos, options, validFor: /^\w*$/ };
    },
  ];
  return [
    SPARK.language,
    sources.map((source) => SPARK.language.data.of({ autocomplete: notInNumbers(source) })),
  ];
}
