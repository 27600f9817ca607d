import { isChosen, type Unmet, unmet, type Whole } from "./conditions";
import { type Field, fieldOf, type JsonSchema, words } from "./schema";
import { isColumns, isRare, languageOf } from "./widgets";

export interface Placed {
  name: string;
  label: string;
  field: Field;
  required: boolean;
  /** Why it has no effect, though it is set. */
  unmet?: Unmet;
}

/**
 * Which fields of an object come first, and which are folded away. A field that has no effect is left out, unless it
 * is set.
 */
export function arrange(
  schema: JsonSchema,
  root: JsonSchema,
  value: Record<string, unknown>,
  hide: string[] = [],
  first: string[] = [],
  whole: Whole = { schema, value },
): { main: Placed[]; advanced: Placed[] } {
  const properties = Object.entries(schema.properties ?? {}).filter(([name]) => !hide.includes(name));
  const names = properties.map(([name]) => name);
  const main: Placed[] = [];
  const advanced: Placed[] = [];
  for (const [name, given] of properties) {
    const field = fieldOf(given, root);
    if (field.shape === "constant") continue;
    const required = schema.required?.includes(name) ?? false;
    const vain = unmet(field.schema, { schema, value }, whole, root);
    if (vain && value[name] === undefined) continue;
    const placed = { name, label: words(name), field, required, unmet: vain };
    const isFolded = !first.includes(name) && isRare(name, required, names) && !isChosen(field.schema, value);
    (isFolded ? advanced : main).push(placed);
  }
  const rank = ({ name, required }: Placed) =>
    first.includes(name) ? first.indexOf(name) : first.length + (required ? 0 : 1);
  main.sort((one, other) => rank(one) - rank(other));
  // One that would be alone in the fold is not worth one.
  return advanced.length === 1 ? { main: [...main, ...advanced], advanced: [] } : { main, advanced };
}

const WIDE = new Set(["cards", "section", "map", "variants", "json"]);

/** Whether a field takes the whole width. */
export function isWide(name: string, field: Field, value: unknown): boolean {
  if (WIDE.has(field.shape)) return true;
  if (field.shape !== "text") return field.shape === "tags";
  const isLong = typeof value === "string" && (value.length > 40 || value.includes("\n"));
  return isLong || isColumns(field.schema) || languageOf(name, field.schema) !== undefined;
}
