import { type UseQueryResult, useQuery } from "@tanstack/react-query";
import { parse } from "yaml";
import { api, body, type Schemas } from "#/api/client";
import type { Fields } from "#/documents/editing/yaml";
import type { JsonSchema } from "#/forms/SchemaForm";

export type Component = Schemas["ComponentInfo"];

/** What sources, processors and sinks there are. */
export interface Catalogue {
  sources: Component[];
  processors: Component[];
  sinks: Component[];
}

export function useCatalogue(): UseQueryResult<Catalogue> {
  return useQuery({
    queryKey: ["catalogue"],
    queryFn: async ({ signal }) => {
      const [connectors, processors] = await Promise.all([
        body(api.GET("/connectors", { signal })),
        body(api.GET("/processors", { signal })),
      ]);
      return { ...connectors, processors };
    },
    staleTime: Number.POSITIVE_INFINITY,
  });
}

/** Where in the schema of a pipeline the types of a role stand. */
export type Role = "source" | "processor" | "sink";

/** The schema of a part as a pipeline has it: with its id, and how a sink is treated. */
export function entrySchema(root: JsonSchema, role: Role, type: string): JsonSchema | undefined {
  const schemas = (root.components as { schemas: Record<string, JsonSchema> }).schemas;
  const fields = schemas.PipelineSpec?.properties;
  const choices =
    role === "source"
      ? fields?.source?.oneOf
      : role === "sink"
        ? fields?.sinks?.items?.oneOf
        : fields?.processors?.items?.oneOf;
  return choices
    ?.map((each) => schemas[each.$ref?.split("/").at(-1) ?? ""])
    .find((each) =>
      type === "ref" ? each?.properties?.ref !== undefined : each?.properties?.type?.const === type,
    );
}

/** What a new part begins with where there is something that always works. */
const BEGINNINGS: Record<string, Fields> = {
  sql: { query: "SELECT *\nFROM input" },
  filter: { where: "true" },
  javascript: { inline: "function processBatch(events) {\n  return events;\n}\n" },
  python: { inline: "def process_row(event):\n    return event\n" },
  generate: { rate: 10 },
};

/** A new part of a type. */
export const beginning = (type: string): Fields => ({ type, ...BEGINNINGS[type] });

/** The example of a component, as a part. */
export function exampleOf(component: Component): Fields {
  const found: unknown = parse(component.example);
  return typeof found === "object" && found !== null
    ? { ...(found as Fields), type: component.type }
    : beginning(component.type);
}

/** A part of another type: it keeps what both types have. */
export function retyped(value: Fields, type: string, schema: JsonSchema | undefined): Fields {
  const kept = Object.entries(value).filter(
    ([name]) => name !== "type" && schema?.properties && name in schema.properties,
  );
  const { type: _, ...begun } = beginning(type);
  const id = value.id === undefined ? {} : { id: value.id };
  return { ...id, type, ...begun, ...Object.fromEntries(kept.filter(([name]) => name !== "id")) };
}
