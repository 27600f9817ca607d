import "#/api/json"; // writes integers of 64 bits with all their digits

/** Rows as the text of files. */

/** Rows as CSV with a header line, by RFC 4180; objects and lists are written as JSON, null is empty. */
export function csvOf(columns: readonly string[], rows: readonly (readonly unknown[])[]): string {
  return [columns, ...rows].map((row) => `${row.map(cell).join(",")}\r\n`).join("");
}

/** Rows as JSON lines: an object for each, with the names of the columns. */
export function jsonLinesOf(columns: readonly string[], rows: readonly (readonly unknown[])[]): string {
  const object = (row: readonly unknown[]) => Object.fromEntries(columns.map((name, at) => [name, row[at]]));
  return rows.map((row) => `${JSON.stringify(object(row))}\n`).join("");
}

function cell(value: unknown): string {
  if (value === null || value === undefined) return "";
  const isPlain = typeof value === "string" || typeof value === "bigint";
  const text = isPlain ? String(value) : JSON.stringify(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
