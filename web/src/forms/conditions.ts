import { fieldOf, isObject, type JsonSchema } from "./schema";

/** Field → the values with which another field has an effect, as the server's specs declare it. */
type Condition = Record<string, unknown[]>;

const KEY = "x-only-with";

/** The whole that a form is about, for conditions on other parts of it. */
export interface Whole {
  schema: JsonSchema;
  value: Record<string, unknown>;
}

/** Why a field has no effect. */
export interface Unmet {
  name: string;
  values: unknown[];
}

export const conditionOf = (schema: JsonSchema): Condition | undefined =>
  isObject(schema[KEY]) ? (schema[KEY] as Condition) : undefined;

/** The condition of a field that isn't met; undefined if the field has an effect. */
export function unmet(field: JsonSchema, beside: Whole, whole: Whole, root: JsonSchema): Unmet | undefined {
  const condition = conditionOf(field);
  if (!condition) return undefined;
  for (const [name, values] of Object.entries(condition)) {
    const isElsewhere = name.startsWith("spec.");
    const path = isElsewhere ? name.slice("spec.".length) : name;
    const found = valueAt(isElsewhere ? whole : beside, path.split("."), root);
    // A variable such as ${MODE} may stand for any value.
    if (typeof found === "string" && found.includes("${")) continue;
    if (!values.includes(found)) return { name: path, values };
  }
  return undefined;
}

/** Whether a document sets all fields that a condition is about: then the field is wanted soon. */
export function isChosen(field: JsonSchema, value: Record<string, unknown>): boolean {
  const condition = conditionOf(field);
  return condition !== undefined && Object.keys(condition).every((name) => value[name] !== undefined);
}

/** A condition in words: `mode: upsert` or `sync`. */
export function textOf({ name, values }: Unmet): string {
  const known = values.filter((each) => each !== null).map(String);
  return [`\`${name}: ${known[0]}\``, ...known.slice(1).map((each) => `\`${each}\``)].join(" or ");
}

/** The value at a path, or its default. */
function valueAt({ schema, value }: Whole, [first, ...rest]: string[], root: JsonSchema): unknown {
  const property = schema.properties?.[first!];
  const field = property && fieldOf(property, root).schema;
  const found = value[first!] ?? field?.default;
  if (rest.length === 0) return found ?? null;
  if (!field) return undefined;
  return valueAt({ schema: field, value: isObject(found) ? found : {} }, rest, root);
}
