import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { ApiError, type Problem, problemsOf } from "#/api/client";
import { fetchWithTag, put, save } from "#/api/documents";
import type { AnyDocument, Kind } from "#/api/kinds";
import type { Value } from "#/builder/yaml";
import { failed } from "#/components/notify";
import { textOfSaved } from "./opening";

/** What the person has to see, or to decide, before a save goes on. */
export type Question =
  | { about: "plan" }
  | { about: "conflict"; theirs: string; tag: string; revision: number };

interface Given {
  kind: Kind;
  id: string | null;
  value: Value;
  tag: string | null;
  onSaved: (saved: AnyDocument) => void;
}

export interface Change {
  acceptReset?: boolean;
  from?: string;
  tag?: string;
}

/** Saves a document: a new one at once, an edit after what it does was shown. */
export function useSaving({ kind, id, value, tag, onSaved }: Given) {
  const queries = useQueryClient();
  const [isSaving, setSaving] = useState(false);
  const [wasTried, setTried] = useState(false);
  const [question, setQuestion] = useState<Question | null>(null);
  // What was refused is this very document: with the next edit it is judged anew.
  const [refused, setRefused] = useState<{ value: Value; problems: Problem[] } | null>(null);
  const document = { ...value, kind: kind.name };

  /** Saves; throws what only the person can answer. */
  const attempt = async ({ acceptReset, from, tag: given }: Change = {}) => {
    setTried(true);
    setRefused(null);
    try {
      const edit = id === null ? {} : { id, revision: given ?? tag ?? undefined, acceptReset, from };
      const saved = await save({ kind, document, ...edit });
      put(queries, kind, saved);
      setQuestion(null);
      onSaved(saved);
    } catch (error) {
      const status = error instanceof ApiError ? error.status : 0;
      if (id !== null && status === 412) {
        const now = await fetchWithTag(kind, id);
        const { revision } = now.document;
        setQuestion({ about: "conflict", theirs: textOfSaved(now.document), tag: now.tag, revision });
      } else if (status === 422 || (id === null && status === 409)) {
        setQuestion(null);
        setRefused({ value, problems: problemsOf(error) });
      } else {
        throw error;
      }
    }
  };

  const submit = async (isValid: boolean) => {
    setTried(true);
    // What an edit does to what runs can only be told of a document that could run.
    if (id !== null && isValid) {
      setQuestion({ about: "plan" });
      return;
    }
    setSaving(true);
    await attempt().catch((error: unknown) => failed("It was not saved", error));
    setSaving(false);
  };

  return {
    document,
    isSaving,
    wasTried,
    question,
    ask: setQuestion,
    attempt,
    submit,
    refused: refused?.value === value ? refused.problems : null,
  };
}
