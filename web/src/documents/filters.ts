/** The filters of a grid in the address of its page, so that a filtered grid can be linked to and kept. */

/** One condition of the grid: text that contains something, or a number by its size. */
interface Condition {
  filterType: "text" | "number";
  type: string;
  filter: string | number;
}

export type FilterModel = Record<string, Condition>;
export type FilterKinds = Readonly<Record<string, Condition["filterType"]>>;

/** Types that a condition has unless the address names another: `?in_rate=5` and `?in_rate=lessThan:5`. */
const USUAL = { text: "contains", number: "greaterThanOrEqual" } as const;

/** The conditions that an address names, of those columns that there are. */
export function modelOf(search: URLSearchParams, kinds: FilterKinds): FilterModel {
  const model: FilterModel = {};
  for (const [column, kind] of Object.entries(kinds)) {
    const condition = parse(search.get(column), kind);
    if (condition !== null) model[column] = condition;
  }
  return model;
}

/** An address with other conditions; what it says beside them stays. */
export function withModel(search: URLSearchParams, model: FilterModel, kinds: FilterKinds): URLSearchParams {
  const next = new URLSearchParams(search);
  for (const [column, kind] of Object.entries(kinds)) {
    const condition = model[column];
    if (condition === undefined) next.delete(column);
    else next.set(column, written(condition, kind));
  }
  return next;
}

function written({ type, filter }: Condition, kind: Condition["filterType"]): string {
  return type === USUAL[kind] ? String(filter) : `${type}:${filter}`;
}

function parse(text: string | null, kind: Condition["filterType"]): Condition | null {
  if (text === null || text === "") return null;
  if (kind === "text") return { filterType: "text", type: USUAL.text, filter: text };
  const [, type = USUAL.number, number] = /^(?:([A-Za-z]+):)?(.+)$/.exec(text) ?? [];
  const filter = Number(number);
  return Number.isFinite(filter) ? { filterType: "number", type, filter } : null;
}

/** A condition on a number. */
export interface NumberCondition {
  filterType: "number";
  type: string;
  filter: number;
}

const SIGNS: Record<string, string> = {
  "": "greaterThanOrEqual",
  ">=": "greaterThanOrEqual",
  "≥": "greaterThanOrEqual",
  ">": "greaterThan",
  "<": "lessThan",
  "<=": "lessThanOrEqual",
  "≤": "lessThanOrEqual",
  "=": "equals",
};

const UNITS: Record<string, number> = { "": 1, k: 1e3, m: 1e6, g: 1e9 };

/** What a person typed, such as `> 5` or `<1k`; null for nothing, undefined if it is no condition (yet). */
export function numberCondition(text: string): NumberCondition | null | undefined {
  if (text.trim() === "") return null;
  const found = /^\s*(>=|<=|[<>=≥≤]?)\s*(-?\d+(?:\.\d+)?)\s*([kmg]?)\s*$/i.exec(text);
  if (!found) return undefined;
  const [, sign = "", number, unit = ""] = found;
  return { filterType: "number", type: SIGNS[sign]!, filter: Number(number) * UNITS[unit.toLowerCase()]! };
}

/** A condition as a person would type it. */
export function numberText({ type, filter }: Pick<NumberCondition, "type" | "filter">): string {
  const sign = Object.entries(SIGNS).find(([, name]) => name === type)?.[0] ?? "";
  return sign === "" ? String(filter) : `${sign} ${filter}`;
}
