import { useQueryClient } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { ApiError, type Problem, problemsOf } from "#/api/client";
import { fetchWithTag, put, save } from "#/api/documents";
import type { AnyDocument, Kind } from "#/api/kinds";
import { failed } from "#/components/notify";
import { textOfSaved } from "./opening";
import type { Value } from "./yaml";

/** What the person has to decide, or to know, before a save goes on. */
export type Question = { about: "plan" } | Conflict;

/** Somebody else has saved another revision meanwhile: its text, its tag and its number. */
export interface Conflict {
  about: "conflict";
  theirs: string;
  tag: string;
  revision: number;
}

interface Change {
  acceptReset?: boolean;
  from?: string;
  /** The revision to replace, if it is not the one that the edit began with. */
  tag?: string;
}

interface Given {
  kind: Kind;
  /** The id of the document that is edited; null for a new one. */
  id: string | null;
  value: Value;
  tag: string | null;
  onTag: (tag: string) => void;
  onSaved: (saved: AnyDocument) => void;
}

/** Saves a document, and asks where that is not the person's decision alone. */
export function useSaving({ kind, id, value, tag, onTag, onSaved }: Given) {
  const queries = useQueryClient();
  const document = useMemo(() => ({ apiVersion: "penstock/v1", ...value, kind: kind.name }), [kind, value]);
  const [isSaving, setSaving] = useState(false);
  const [question, setQuestion] = useState<Question | null>(null);
  // What the server refused is about this very document: with the next edit it is judged anew.
  const [refused, setRefused] = useState<{ value: Value; problems: Problem[] } | null>(null);

  /** Brings a refusal to where it is seen best. What is left is thrown: the plan shows it. */
  const refuse = async (error: unknown) => {
    const { status, code } = error instanceof ApiError ? error : { status: 0, code: "" };
    if (id !== null && status === 412) {
      const { document: saved, tag: theirs } = await fetchWithTag(kind, id);
      const { revision } = saved;
      setQuestion({ about: "conflict", theirs: textOfSaved(saved), tag: theirs, revision });
      return;
    }
    if (id !== null && code === "rolled_back") {
      onTag((await fetchWithTag(kind, id)).tag); // going back has made a revision, too
      throw error;
    }
    if (id !== null && code === "would_reset") {
      setQuestion({ about: "plan" });
    } else if (status === 422 || status === 409) {
      setQuestion(null);
      setRefused({ value, problems: problemsOf(error) });
    } else throw error;
  };

  /** Saves it; throws what the person has to be told. */
  const attempt = async ({ acceptReset, from, tag: other }: Change) => {
    setSaving(true);
    setRefused(null);
    try {
      const edit = id === null ? {} : { id, revision: other ?? tag ?? undefined, acceptReset, from };
      const saved = await save({ kind, document, ...edit });
      put(queries, kind, saved);
      setQuestion(null);
      onSaved(saved);
    } catch (error) {
      await refuse(error);
    } finally {
      setSaving(false);
    }
  };

  return {
    kind,
    id,
    document,
    isSaving,
    question,
    ask: setQuestion,
    attempt,
    /** Saves it without a plan. */
    apply: (change: Change = {}) => attempt(change).catch((error) => failed("Not saved", error)),
    refused: refused?.value === value ? refused.problems : null,
  };
}

export type Saving = ReturnType<typeof useSaving>;
