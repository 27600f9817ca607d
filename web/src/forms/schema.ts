/** JSON Schema as pydantic writes it, and what a form makes of it. */

export interface JsonSchema {
  $ref?: string;
  $defs?: Record<string, JsonSchema>;
  type?: string;
  title?: string;
  description?: string;
  default?: unknown;
  const?: unknown;
  enum?: unknown[];
  anyOf?: JsonSchema[];
  oneOf?: JsonSchema[];
  properties?: Record<string, JsonSchema>;
  required?: string[];
  additionalProperties?: boolean | JsonSchema;
  items?: JsonSchema;
  pattern?: string;
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
  [keyword: string]: unknown;
}

/** What a field is filled in with. */
export type Shape =
  | "constant"
  | "switch"
  | "choice"
  | "number"
  | "text"
  | "tags"
  | "cards"
  | "section"
  | "map"
  | "variants"
  | "json";

export interface Field {
  shape: Shape;
  /** The schema with references followed and a `null` among the alternatives taken out. */
  schema: JsonSchema;
  /** Whether `null` may be written. */
  nullable: boolean;
  /** The alternatives of `variants`. */
  variants: JsonSchema[];
}

/** A schema with its `$ref` followed; what stands beside the reference wins. */
export function resolve(schema: JsonSchema, root: JsonSchema): JsonSchema {
  if (schema.$ref === undefined) return schema;
  const { $ref, ...beside } = schema;
  let found: unknown = root;
  for (const part of $ref.replace(/^#\//, "").split("/")) {
    found = (found as Record<string, unknown> | undefined)?.[part];
  }
  return { ...resolve((found ?? {}) as JsonSchema, root), ...beside };
}

/** What to show for a schema. */
export function fieldOf(given: JsonSchema, root: JsonSchema): Field {
  const { anyOf, oneOf, ...rest } = resolve(given, root);
  const all = (anyOf ?? oneOf ?? []).map((each) => resolve(each, root));
  const variants = all.filter((each) => each.type !== "null");
  const nullable = variants.length < all.length;
  if (variants.length > 1) return { shape: "variants", schema: rest, nullable, variants };
  const schema = variants[0] ? { ...variants[0], ...rest } : rest;
  return { shape: shapeOf(schema, root), schema, nullable, variants: [] };
}

function shapeOf(schema: JsonSchema, root: JsonSchema): Shape {
  if (schema.const !== undefined) return "constant";
  if (schema.enum) return "choice";
  switch (schema.type) {
    case "boolean":
      return "switch";
    case "integer":
    case "number":
      return "number";
    case "string":
      return "text";
    case "array":
      return shapeOfArray(schema, root);
    case "object":
      if (schema.properties) return "section";
      return shapeOfMap(schema, root);
    default:
      return "json";
  }
}

function shapeOfArray(schema: JsonSchema, root: JsonSchema): Shape {
  const { shape } = fieldOf(schema.items ?? {}, root);
  if (shape === "text" || shape === "number" || shape === "choice") return "tags";
  return shape === "section" || shape === "variants" ? "cards" : "json";
}

function shapeOfMap(schema: JsonSchema, root: JsonSchema): Shape {
  if (typeof schema.additionalProperties !== "object") return "json";
  const { shape } = fieldOf(schema.additionalProperties, root);
  return shape === "text" || shape === "number" ? "map" : "json";
}

/** The alternative that a value is of; the first one that could be, if there is no value yet. */
export function variantOf(variants: JsonSchema[], value: unknown, root: JsonSchema): number {
  const place = variants.findIndex((each) => fits(each, value, root));
  return Math.max(place, 0);
}

function fits(schema: JsonSchema, value: unknown, root: JsonSchema): boolean {
  const { shape, schema: own } = fieldOf(schema, root);
  switch (shape) {
    case "constant":
      return value === own.const;
    case "choice":
      return own.enum!.includes(value);
    case "switch":
      return typeof value === "boolean";
    case "number":
      return typeof value === "number";
    case "text":
      return typeof value === "string";
    case "section":
      return isObject(value) && tagFits(own, value, root);
    case "map":
      return isObject(value);
    case "tags":
    case "cards":
      return Array.isArray(value);
    default:
      return own.type === "object" ? isObject(value) : value !== undefined;
  }
}

// Of several objects the one whose constants (`type: file`) are those of the value; without constants, the
// one that has all of its fields.
function tagFits(schema: JsonSchema, value: Record<string, unknown>, root: JsonSchema): boolean {
  const properties = Object.entries(schema.properties ?? {});
  const constants = properties
    .map(([name, each]) => [name, resolve(each, root).const] as const)
    .filter(([, constant]) => constant !== undefined);
  if (constants.length > 0) return constants.every(([name, constant]) => value[name] === constant);
  return Object.keys(value).every((name) => schema.properties && name in schema.properties);
}

/** How an alternative is called in the choice of them. */
export function variantTitle(schema: JsonSchema, root: JsonSchema): string {
  const { shape, schema: own } = fieldOf(schema, root);
  const tag = own.properties?.type?.const;
  if (typeof tag === "string") return tag;
  if (own.properties && "ref" in own.properties) return "ref";
  switch (shape) {
    case "constant":
      return String(own.const);
    case "choice":
      return "one of these";
    case "tags":
    case "cards":
      return "list";
    case "map":
      return "pairs";
    case "section":
      return words(own.title ?? "fields");
    case "json":
      return "JSON";
    default:
      return shape;
  }
}

/** What a new value of a schema begins with: its constants, and nothing else. */
export function seed(schema: JsonSchema, root: JsonSchema): unknown {
  const { shape, schema: own, variants } = fieldOf(schema, root);
  if (shape === "constant") return own.const;
  if (shape === "variants") return seed(variants[0]!, root);
  if (shape === "tags" || shape === "cards") return [];
  if (shape === "map" || (shape === "json" && own.type === "object")) return {};
  if (shape !== "section") return undefined;
  const constants: Record<string, unknown> = {};
  for (const [name, each] of Object.entries(own.properties ?? {})) {
    const constant = resolve(each, root).const;
    if (constant !== undefined) constants[name] = constant;
  }
  return constants;
}

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

// Of these the name says already that they are times.
const TIMES = /(retention|timeout|deadline|backoff|ttl)_ms$/;

/** snake_case or CamelCase → words, the first with a capital letter. */
export function words(name: string): string {
  const text = name
    .replace(TIMES, "$1")
    .replace(/_ms$/, " time")
    .replace(/([a-z])([A-Z])/g, "$1 $2")
    .replaceAll("_", " ")
    .toLowerCase();
  return (text.charAt(0).toUpperCase() + text.slice(1)).replace(
    /\b(id|url|sql|json|wal|cpu|http|api|ttl|tx)\b/gi,
    (word) => word.toUpperCase(),
  );
}
