import { parse } from "#/api/json";

/** A column of a typed stream. */
export interface Column {
  name: string;
  type: string;
  required: boolean;
}

/** The columns of a schema in Spark's DDL, such as `id BIGINT NOT NULL, tags ARRAY<STRING>`. */
export function columnsOf(schema: string): Column[] {
  return split(schema).flatMap((part) => {
    const [, quoted, plain, rest = ""] = /^\s*(?:`([^`]+)`|([^\s:]+))\s*:?\s*(.*?)\s*$/s.exec(part) ?? [];
    const name = quoted ?? plain;
    if (!name) return [];
    const type = rest.replace(/\s+(NOT\s+NULL|COMMENT\s+.*)/gis, "").trim();
    return [{ name, type, required: /\sNOT\s+NULL/i.test(` ${rest}`) }];
  });
}

/** The parts of a list, at commas that are not inside of brackets. */
export function split(list: string): string[] {
  const parts = [""];
  let depth = 0;
  for (const letter of list) {
    if (letter === "<" || letter === "(") depth += 1;
    if (letter === ">" || letter === ")") depth -= 1;
    if (letter === "," && depth === 0) parts.push("");
    else parts[parts.length - 1] += letter;
  }
  return parts.filter((part) => part.trim() !== "");
}

/** What a person typed as the JSON of a column: texts stay as they are, all else is read as JSON if it can be. */
export function typedValue(text: string, type: string): unknown {
  if (/^(string|(var)?char|binary|date|timestamp)/i.test(type)) return text;
  try {
    return parse(text);
  } catch {
    return text; // the server says what is wrong with it, and where
  }
}
