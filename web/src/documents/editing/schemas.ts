import { useMemo } from "react";
import { useSchemas } from "#/api/openapi";
import type { JsonSchema } from "#/forms/SchemaForm";

/** The server's description of all documents, as a root to look references up in. */
export function useRoot(): { root: JsonSchema | undefined; error: unknown } {
  const { data, error } = useSchemas();
  const root = useMemo(() => (data ? ({ components: { schemas: data } } as JsonSchema) : undefined), [data]);
  return { root, error };
}

/** The schemas of the types that a registered source or sink can have, by type. */
export function bindings(root: JsonSchema, kind: "Source" | "Sink"): Record<string, JsonSchema> {
  const { schemas } = root.components as { schemas: Record<string, JsonSchema> };
  const found: Record<string, JsonSchema> = {};
  for (const each of schemas[`${kind}Document`]?.properties?.spec?.oneOf ?? []) {
    const schema = schemas[each.$ref?.split("/").at(-1) ?? ""];
    const type = schema?.properties?.type?.const;
    if (schema && typeof type === "string") found[type] = schema;
  }
  return found;
}
