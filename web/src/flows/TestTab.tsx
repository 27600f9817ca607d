import { useMutation, useQueryClient } from "@tanstack/react-query";
import { lazy, useMemo } from "react";
import { api, body } from "#/api/client";
import { put } from "#/api/documents";
import type { AnyDocument, Kind } from "#/api/kinds";
import { done, failed } from "#/components/notify";
import { contentOf } from "#/documents/content";
import { below } from "./api";

const TestPanel = lazy(() => import("#/testing/TestPanel"));

/** Tries the saved document on sample events; test cases are saved with it, which restarts nothing. */
export default function TestTab({ kind, document }: { kind: Kind; document: AnyDocument }) {
  const queries = useQueryClient();
  const content = useMemo(() => contentOf(document), [document]);
  const save = useMutation({
    mutationFn: (testCase: object) => addCase(kind, document, testCase),
    onSuccess: (saved) => {
      put(queries, kind, saved);
      done(`The test case is saved as a part of ${kind.one} ${saved.name}.`);
    },
    onError: (error) => failed("The test case was not saved", error),
  });
  return <TestPanel document={content} place={kind.place} onSaveCase={save.mutate} />;
}

async function addCase(kind: Kind, document: AnyDocument, testCase: object): Promise<AnyDocument> {
  const tests = [...(document.spec.tests ?? []), testCase];
  const saved = await body(
    api.PATCH(below(kind, "/pipelines/{name}"), {
      params: { path: { name: document.id } },
      body: { spec: { tests } } as never,
    }),
  );
  return { ...saved, kind: kind.name } as AnyDocument;
}
