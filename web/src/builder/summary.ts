import type { Fields } from "#/documents/editing/yaml";
import type { Part } from "./parts";

const CODE = ["query", "where", "inline"];

/** What a part does, in a line: the beginning of its code, or its first fields. */
export function summaryOf(part: Part): string {
  const { value, type } = part;
  if (type === "ref") return String(value.ref ?? "");
  if (type === "task") return "the steps of a task";
  if (type === "route") return routeLine(value);
  for (const name of CODE) if (typeof value[name] === "string") return firstLine(value[name]);
  return Object.entries(value)
    .filter(([name]) => !["id", "type", "required"].includes(name))
    .map(([name, each]) => `${name}: ${brief(each)}`)
    .slice(0, 2)
    .join(" · ");
}

/** The first line that says something: neither empty nor a comment. */
function firstLine(code: string): string {
  const lines = code.split("\n").map((line) => line.trim());
  return lines.find((line) => line && !/^(--|\/\/|#|\/\*)/.test(line)) ?? lines[0] ?? "";
}

function routeLine(value: Fields): string {
  const rules = Array.isArray(value.rules) ? (value.rules as Fields[]) : [];
  const chosen = rules.map((rule) => brief(rule.sinks)).join(", ");
  return `to ${chosen || "no sink yet"}, else ${brief(value.default ?? "dead_letter")}`;
}

function brief(value: unknown): string {
  if (Array.isArray(value)) return value.map(brief).join(", ");
  if (typeof value === "object" && value !== null) return Object.keys(value).join(", ");
  return String(value ?? "");
}
