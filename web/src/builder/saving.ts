import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { ApiError, type Problem, problemsOf } from "#/api/client";
import { fetchWithTag, put, save } from "#/api/documents";
import { type AnyDocument, kindAt, type Place } from "#/api/kinds";
import { failed } from "#/components/notify";
import { textOfSaved } from "./opening";
import type { Value } from "./yaml";

/** What the person has to decide, or to know, before a save goes on. */
export type Question =
  | { about: "plan" }
  | { about: "conflict"; theirs: string; tag: string; revision: number }
  | { about: "rolled_back"; problems: Problem[] };

interface Given {
  place: Place;
  /** The id of the document that is edited; null for a new one. */
  id: string | null;
  value: Value;
  tag: string | null;
  onTag: (tag: string) => void;
  onSaved: (saved: AnyDocument) => void;
}

/** Saves what was built, and asks where that is not the person's decision alone. */
export function useSaving({ place, id, value, tag, onTag, onSaved }: Given) {
  const kind = kindAt(place)!;
  const queries = useQueryClient();
  const [isSaving, setSaving] = useState(false);
  const [question, setQuestion] = useState<Question | null>(null);
  // What the server refused is about this very document: with the next edit it is judged anew.
  const [refused, setRefused] = useState<{ value: Value; problems: Problem[] } | null>(null);

  const refuse = async (error: unknown) => {
    const status = error instanceof ApiError ? error.status : 0;
    const code = error instanceof ApiError ? error.code : "";
    if (id !== null && status === 412) {
      const { document, tag: theirs } = await fetchWithTag(kind, id);
      setQuestion({
        about: "conflict",
        theirs: textOfSaved(document),
        tag: theirs,
        revision: document.revision,
      });
    } else if (id !== null && code === "rolled_back") {
      onTag((await fetchWithTag(kind, id)).tag); // going back made a revision, too
      setQuestion({ about: "rolled_back", problems: problemsOf(error) });
    } else if (code === "would_reset") {
      setQuestion({ about: "plan" });
    } else if (status === 422 || status === 409) {
      setQuestion(null);
      setRefused({ value, problems: problemsOf(error) });
    } else {
      failed("It was not saved", error);
    }
  };

  const apply = async (
    change: { acceptReset?: boolean; from?: string; tag?: string; status?: string } = {},
  ) => {
    setSaving(true);
    setRefused(null);
    const document = {
      apiVersion: "penstock/v1",
      kind: kind.name,
      ...value,
      ...(change.status ? { status: change.status } : {}),
    };
    const revision = change.tag ?? tag ?? undefined;
    try {
      const { acceptReset, from } = change;
      const saved = await save({
        kind,
        document,
        ...(id === null ? {} : { id, revision, acceptReset, from }),
      });
      put(queries, kind, saved);
      setQuestion(null);
      onSaved(saved);
    } catch (error) {
      await refuse(error).catch((again: unknown) => failed("It was not saved", again));
    } finally {
      setSaving(false);
    }
  };

  return {
    isSaving,
    question,
    ask: setQuestion,
    apply,
    refused: refused?.value === value ? refused.problems : null,
  };
}

export type Saving = ReturnType<typeof useSaving>;
