import { type UseQueryResult, useQuery } from "@tanstack/react-query";
import { api, body, type Schemas } from "#/api/client";
import type { Kind } from "#/api/kinds";

export type Plan = Schemas["EditPlanView"];
export type Effect = Schemas["StepEffect"];

/** What an edit would do to what runs. Nothing is changed by asking. */
export function usePlan(kind: Kind, id: string, document: object): UseQueryResult<Plan> {
  return useQuery({
    queryKey: ["plan", kind.place, id, JSON.stringify(document)],
    queryFn: ({ signal }) =>
      body(
        // The five kinds have the same route, which the types of a path with a variable in it cannot say.
        api.POST(`/${kind.place}/{name}/plan` as "/pipelines/{name}/plan", {
          params: { path: { name: id } },
          body: document as never,
          signal,
        }),
      ),
    gcTime: 0,
    retry: false,
  });
}

/** The edit in one sentence. */
export function verdict({ changes, steps, dependents, resets }: Plan): string {
  const effects = [...steps, ...dependents.flatMap((each) => each.steps)].map((step) => step.effect);
  if (resets) return "This edit discards state: a step's memory or the position in the source.";
  if (changes.length === 0) return "No changes.";
  if (effects.includes("restarts")) {
    return "Running flows restart from their checkpoint. No events are lost or delivered twice.";
  }
  return effects.length > 0 ? "Running flows continue unchanged." : "No running flow is affected.";
}

/** Where the parts that are reset would have to be read again from, to be as they were. */
export function rebuildFrom(steps: readonly Effect[]): string[] {
  return [...new Set(steps.flatMap((step) => (step.effect === "resets" && step.from ? [step.from] : [])))];
}
