import { useDebouncedValue } from "@mantine/hooks";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { api, body, type Problem, problemsOf, type Schemas } from "#/api/client";
import { parse } from "#/api/json";
import { KIND_LIST, type Place } from "#/api/kinds";
import type { Fields, Value } from "#/documents/editing/yaml";
import { type Part, type PartKey, partOfPath, type View } from "./parts";

export type Analysis = Schemas["Analysis"];
export type StepColumns = Schemas["StepSchema"];

/** What the server thinks of the document as it is now. */
export interface Check {
  errors: Problem[];
  warnings: Problem[];
  /** The columns after the source and after each step, up to the first one that is wrong. */
  steps: StepColumns[];
  id: string | null;
  isChecking: boolean;
  /** Whether the present document was found to be valid. */
  isValid: boolean;
  again: () => void;
}

const PAUSE_MS = 500;
const NONE: Problem[] = [];

/** Checks a document as it is typed; the answer to the latest text wins. */
export function useCheck(place: Place, value: Value, isReadable: boolean): Check {
  const now = useMemo(() => JSON.stringify(value), [value]);
  const [asked] = useDebouncedValue(now, PAUSE_MS);
  const query = useQuery({
    queryKey: ["validate", place, asked],
    queryFn: ({ signal }) => checked(place, parse(asked) as Value, signal),
    placeholderData: keepPreviousData,
    retry: false,
    gcTime: 30_000,
    enabled: isReadable,
  });
  const { data, error, isFetching, refetch } = query;
  const isChecking = now !== asked || isFetching;
  return {
    errors: error && !isFetching ? problemsOf(error) : (data?.errors ?? NONE),
    warnings: data?.warnings ?? NONE,
    steps: data?.steps ?? [],
    id: data?.id ?? null,
    isChecking,
    isValid: !isChecking && !error && (data?.valid ?? false),
    again: () => void refetch(),
  };
}

/**
 * The analysis of a document. Steps are judged, and columns told, even while other parts are wrong: a person
 * builds one part after the other.
 */
async function checked(place: Place, value: Value, signal: AbortSignal): Promise<Analysis> {
  const kind = KIND_LIST.find((each) => each.place === place)!.name;
  const analysis = await validate({ kind, ...value }, signal);
  const errors = [...(analysis.errors ?? [])];
  if (analysis.valid || analysis.steps?.length) return analysis;
  // Once to find the first wrong step, and once for the columns that come into it.
  for (let times = 0; times < 2; times++) {
    const part = soundPart(place, value, errors);
    if (part === null) break;
    const found = await validate(part, signal);
    if (found.steps?.length) return { ...analysis, errors, steps: found.steps };
    errors.push(...(found.errors ?? []).filter((each) => partOfPath(each.path).startsWith("step:")));
  }
  return { ...analysis, errors };
}

async function validate(document: object, signal: AbortSignal): Promise<Analysis> {
  const answer = await body(api.POST("/validate", { body: document as never, signal }));
  return answer.documents[0]!;
}

/** The document up to its first wrong step: so that the columns which come into that step are known. */
export function soundPart(place: Place, value: Value, errors: readonly Problem[]): object | null {
  const spec = value.spec ?? {};
  const source = place === "tasks" ? { type: "stream", stream: spec.input } : spec.source;
  const parts = errors.map((each) => partOfPath(each.path));
  if (!source || parts.includes("source") || Array.isArray(spec.tasks)) return null;
  const steps = parts.filter((key) => key.startsWith("step:")).map((key) => Number(key.slice(5)));
  const processors = ((spec.processors ?? []) as Fields[]).slice(
    0,
    steps.length ? Math.min(...steps) : undefined,
  );
  return {
    kind: "Pipeline",
    metadata: { name: "part" },
    // A route names sinks, which the part has none of; it changes no columns.
    spec: { source, processors: processors.map(plain), sinks: [{ type: "drop" }] },
  };
}

const plain = (step: Fields, index: number) =>
  step.type === "route" ? { id: step.id ?? `route_${index}`, type: "filter", where: "true" } : step;

/** How many errors and warnings each part has. */
export function countsByPart(check: Check): Map<PartKey, { errors: number; warnings: number }> {
  const counts = new Map<PartKey, { errors: number; warnings: number }>();
  const count = (problems: readonly Problem[], level: "errors" | "warnings") => {
    for (const problem of problems) {
      const key = partOfPath(problem.path);
      const found = counts.get(key) ?? { errors: 0, warnings: 0 };
      counts.set(key, { ...found, [level]: found[level] + 1 });
    }
  };
  count(check.errors, "errors");
  count(check.warnings, "warnings");
  return counts;
}

/** The columns of the events that leave a part; undefined while they are not known. */
export function columnsAfter(check: Check, part: Part): StepColumns["columns"] | undefined {
  if (part.group === "sink") return undefined;
  const id = part.group === "source" ? "source" : part.id;
  const found = check.steps.find((step) => step.id === id);
  // The steps of a task are called `task.step`: what leaves the last one leaves the task.
  return (found ?? check.steps.findLast((step) => step.id.startsWith(`${id}.`)))?.columns;
}

/** The columns of the events that come into a part. */
export function columnsBefore(check: Check, view: View, part: Part): StepColumns["columns"] | undefined {
  if (part.group === "source") return undefined;
  const index = part.group === "sink" ? view.steps.length : part.index;
  const before = index === 0 ? view.source : view.steps[index - 1];
  return before ? columnsAfter(check, before) : undefined;
}
