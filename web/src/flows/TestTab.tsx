import { useMutation, useQueryClient } from "@tanstack/react-query";
import { lazy, useMemo } from "react";
import { useNavigate } from "react-router";
import { api, body } from "#/api/client";
import { put } from "#/api/documents";
import { type AnyDocument, type Kind, pageOf } from "#/api/kinds";
import { useAllowed } from "#/api/session";
import { done, failed } from "#/components/notify";
import { contentOf } from "#/documents/content";
import { below } from "./api";

const TestPanel = lazy(() => import("#/testing/TestPanel"));

/** Tries the saved document on sample events; test cases are saved with it, which restarts nothing. */
export default function TestTab({ kind, document }: { kind: Kind; document: AnyDocument }) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const content = useMemo(() => contentOf(document), [document]);
  const save = useMutation({
    mutationFn: (cases: object[]) => withCases(kind, document, cases),
    onSuccess: (saved) => {
      put(queries, kind, saved);
      done(`Saved the test cases of ${saved.name} as revision ${saved.revision}. Nothing was restarted.`);
    },
    onError: (error) => failed("The test cases were not saved", error),
  });
  const mayEdit = useAllowed("editor");
  const edit = (path: string) =>
    navigate(`${pageOf(document.kind, document.id)}/edit?at=${encodeURIComponent(path)}`);
  return (
    <TestPanel
      document={content}
      place={kind.place}
      onCases={mayEdit ? save.mutate : undefined}
      onPick={mayEdit ? edit : undefined}
    />
  );
}

async function withCases(kind: Kind, document: AnyDocument, cases: object[]): Promise<AnyDocument> {
  const tests = cases.length > 0 ? cases : null;
  const saved = await body(
    api.PATCH(below(kind, "/pipelines/{name}"), {
      params: { path: { name: document.id } },
      body: { spec: { tests } } as never,
    }),
  );
  return { ...saved, kind: kind.name } as AnyDocument;
}
