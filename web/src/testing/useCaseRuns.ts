import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { api, body, type Schemas } from "#/api/client";
import type { Case, CaseResult } from "./cases";

/** How a test ended, and of what: a result of another document or another test is old. */
export interface CaseRun {
  result: CaseResult;
  key: string;
}

const keyOf = (document: object, testCase: Case | undefined) => {
  const spec = { ...(document as { spec?: object }).spec, tests: undefined };
  return JSON.stringify([spec, testCase]);
};

/** Runs the tests of a document, all or some, and remembers how each of them ended. */
export function useCaseRuns(document: Record<string, unknown>, cases: readonly Case[]) {
  const [runs, setRuns] = useState<Record<string, CaseRun>>({});
  const running = useMutation({
    mutationFn: (names: string[] | null) =>
      body(api.POST("/test", { body: { document, run: names ?? "all" } as Schemas["TestBody"] })),
    onSuccess: (tested) => {
      const found = ((tested.cases ?? []) as CaseResult[]).map((result) => {
        const own = cases.find((each) => each.name === result.name);
        return [result.name, { result, key: keyOf(document, own) }] as const;
      });
      setRuns((before) => ({ ...before, ...Object.fromEntries(found) }));
    },
  });
  return {
    runs,
    isOld: (testCase: Case) => runs[testCase.name]?.key !== keyOf(document, testCase),
    isRunning: (name: string) => running.isPending && (running.variables?.includes(name) ?? true),
    isBusy: running.isPending,
    error: running.error,
    run: running.mutate,
  };
}
