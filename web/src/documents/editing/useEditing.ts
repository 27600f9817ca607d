import { useCallback, useMemo, useRef, useState } from "react";
import { useNavigate } from "react-router";
import { type Document, visit } from "yaml";
import { type AnyDocument, type Kind, pageOf } from "#/api/kinds";
import { merged } from "#/builder/merge";
import { edited, read, type Value } from "#/builder/yaml";
import { done } from "#/components/notify";
import { type Opinion, useDerivedId, useOpinion } from "./analysis";
import type { Opened } from "./opening";
import { useSaving } from "./saving";

// Fields stand in this order, wherever they were set.
const ORDER = ["apiVersion", "kind", "metadata", "spec", "status"];

/** The work on one document: its text is the truth, and a form is a way to change it. */
export function useEditing(kind: Kind, opened: Opened) {
  const [text, setText] = useState(opened.text);
  // While the text cannot be read, the form shows what it said last.
  const [good, setGood] = useState(opened.text);
  const [base, setBase] = useState(opened.text);
  const [tag, setTag] = useState(opened.tag);
  const isDone = useRef(false);
  const navigate = useNavigate();
  const { fault } = useMemo(() => read(text), [text]);
  const value = useMemo((): Value => read(good).value ?? {}, [good]);
  const opinion = useOpinion(kind, value);
  const derived = useDerivedId(opened.id === null ? value.metadata?.name : undefined);

  const write = useCallback((next: string) => {
    setText(next);
    if (read(next).value !== null) setGood(next);
  }, []);
  const change = (next: Value) =>
    write(
      edited(good, (document) => {
        unfold(document);
        document.contents = merged(document, document.contents, next, ORDER) as typeof document.contents;
      }),
    );
  const saving = useSaving({
    kind,
    id: opened.id,
    value,
    tag,
    onSaved: (saved: AnyDocument) => {
      isDone.current = true;
      done(`The ${kind.one} ${saved.name} is saved.`);
      void navigate(pageOf(kind.name, saved.id));
    },
  });
  return {
    kind,
    /** The id of the document that is edited; null for a new one. */
    id: opened.id,
    /** The id that a new one will have, once it is known. */
    derivedId: opened.id ?? derived,
    text,
    fault,
    value,
    metadata: value.metadata ?? {},
    spec: value.spec ?? {},
    write,
    change,
    setSpec: (spec: Record<string, unknown>) => change({ ...value, spec }),
    setMetadata: (metadata: Record<string, unknown>) => change({ ...value, metadata }),
    isChanged: text !== base,
    isDone,
    opinion,
    saving,
    problems: shown(opinion, saving.refused, saving.wasTried),
    /** Goes on from what is saved now. */
    rebase: (saved: string, revision: string) => {
      setTag(revision);
      setBase(saved);
    },
  };
}

export type Editing = ReturnType<typeof useEditing>;

// `{}` was written because there was nothing in it: what comes into it stands on lines of its own.
function unfold(document: Document): void {
  visit(document, {
    Map: (_, map) => {
      if (map.items.length === 0) map.flow = false;
    },
  });
}

// That something is still to be filled in is no fault before somebody says it is complete.
function shown(opinion: Opinion, refused: Opinion["errors"] | null, wasTried: boolean) {
  if (refused) return refused;
  return wasTried ? opinion.errors : opinion.errors.filter((problem) => problem.code !== "missing_field");
}
