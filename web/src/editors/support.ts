import { autocompletion } from "@codemirror/autocomplete";
import { javascript, javascriptLanguage } from "@codemirror/lang-javascript";
import { json } from "@codemirror/lang-json";
import { sql } from "@codemirror/lang-sql";
import { yaml } from "@codemirror/lang-yaml";
import type { Extension } from "@codemirror/state";
import { columnOption, functionOption, scriptSource } from "./completions";
import type { SqlFunction } from "./functions";
import type { Column, Language } from "./language";
import { SPARK } from "./spark";

/** Highlighting and completion of a language. */
export function support(language: Language, columns: Column[], functions: SqlFunction[]): Extension {
  switch (language) {
    case "sql":
      return [autocompletion(), spark(columns, functions)];
    case "javascript":
      return [
        autocompletion(),
        javascript(),
        javascriptLanguage.data.of({ autocomplete: scriptSource(columns) }),
      ];
    case "yaml":
      return yaml();
    case "json":
      return json();
    case "text":
      return [];
  }
}

function spark(columns: Column[], functions: SqlFunction[]): Extension {
  const options = functions.map(functionOption);
  return [
    sql({
      dialect: SPARK,
      schema: { input: columns.map(columnOption) },
      defaultTable: "input",
      upperCaseKeywords: true,
    }),
    SPARK.language.data.of({
      autocomplete: (context: import("@codemirror/autocomplete").CompletionContext) => {
        const word = context.matchBefore(/[\w]+/);
        if (!word && !context.explicit) return null;
        // What follows a dot is a field, never a function.
        const before = context.state.sliceDoc(Math.max(0, (word?.from ?? context.pos) - 1), word?.from);
        if (before === ".") return null;
        return { from: word?.from ?? context.pos, options, validFor: /^\w*$/ };
      },
    }),
  ];
}
