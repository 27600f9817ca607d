import { type UseQueryResult, useQuery } from "@tanstack/react-query";
import { body, reach } from "./client";

/** The part of JSON Schema that the server's documents are described with. */
export interface Described {
  $ref?: string;
  default?: unknown;
  properties?: Record<string, Described>;
}

type Components = Record<string, Described>;

/** The JSON Schemas of everything that can be declared, as the server describes it. */
export function useSchemas(): UseQueryResult<Components> {
  return useQuery({
    queryKey: ["openapi"],
    queryFn: async ({ signal }) => {
      const found = reach("/openapi.json", { signal }).then(async (response) => ({
        data: response.ok ? ((await response.json()) as { components: { schemas: Components } }) : undefined,
        response,
      }));
      return (await body(found)).components.schemas;
    },
    staleTime: Number.POSITIVE_INFINITY,
  });
}

/** A value with everything that it leaves open filled in by the defaults of its schema. */
export function withDefaults(value: unknown, schema: Described, schemas: Components): unknown {
  const known = resolved(schema, schemas);
  if (known.properties === undefined) return value === undefined ? known.default : value;
  if (value !== undefined && !isObject(value)) return value;
  const given = (value ?? {}) as Record<string, unknown>;
  const filled: Record<string, unknown> = { ...given };
  for (const [name, field] of Object.entries(known.properties)) {
    const found = withDefaults(given[name], field, schemas);
    if (found !== undefined) filled[name] = found;
  }
  return filled;
}

function resolved(schema: Described, schemas: Components): Described {
  const name = schema.$ref?.split("/").at(-1);
  return name === undefined ? schema : resolved(schemas[name] ?? {}, schemas);
}

const isObject = (value: unknown) => typeof value === "object" && value !== null && !Array.isArray(value);
