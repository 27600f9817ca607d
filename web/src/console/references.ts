/** A place in a query where a table is named. */
export interface Reference {
  table: string;
  from: number;
  to: number;
  /** Whether the query gives the table another name there. */
  alias: boolean;
}

const TOKEN =
  /--[^\n]*|\/\*[\s\S]*?\*\/|'(?:[^'\\]|\\[\s\S])*'|"(?:[^"\\]|\\[\s\S])*"|`(?:[^`]|``)*`|[A-Za-z_]\w*|\s+|[\s\S]/g;

/** Words that end the list of tables after FROM, so none of them is another name of a table. */
const CLAUSES = new Set(
  "where group order having limit union except intersect join inner left right full cross on using lateral window select qualify sort distribute cluster tablesample pivot natural anti semi".split(
    " ",
  ),
);

/** The tables that a query names after FROM and JOIN; subqueries by WITH and table functions are none. */
export function referencesIn(sql: string): Reference[] {
  const tokens = [...sql.matchAll(TOKEN)]
    .filter(([text]) => !/^(\s|--|\/\*)/.test(text))
    .map((match) => ({ text: match[0], at: match.index, word: match[0].toLowerCase() }));
  const own = new Set<string>();
  tokens.forEach(({ word }, place) => {
    if (word === "as" && tokens[place + 1]?.text === "(" && place > 0)
      own.add(nameOf(tokens[place - 1]!.text));
  });
  const found: Reference[] = [];
  // What the next word is: a table, something after a table, or anything else.
  let next: "table" | "after" | "other" = "other";
  tokens.forEach(({ text, at, word }, place) => {
    if (word === "from" || word === "join") {
      next = "table";
    } else if (next === "table") {
      next = "other";
      if (!/^[`A-Za-z_]/.test(text) || tokens[place + 1]?.text === "(") return;
      next = "after";
      if (own.has(nameOf(text))) return;
      const following = tokens[place + 1]?.word ?? "";
      const alias = following === "as" || (/^[`a-z_]/.test(following) && !CLAUSES.has(following));
      found.push({ table: nameOf(text), from: at, to: at + text.length, alias });
    } else if (next === "after") {
      if (text === ",") next = "table";
      else if (!/^[`A-Za-z_]/.test(text) || CLAUSES.has(word)) next = "other";
    }
  });
  return found;
}

/** The different tables that a query names. */
export const tablesIn = (sql: string): string[] => [
  ...new Set(referencesIn(sql).map(({ table }) => table.toLowerCase())),
];

const nameOf = (text: string) =>
  text.startsWith("`") ? text.slice(1, -1).replaceAll("``", "`") : text.toLowerCase();
