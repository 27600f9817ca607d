import { useCallback, useMemo, useRef, useState } from "react";
import { useNavigate } from "react-router";
import { type Document, visit } from "yaml";
import { type AnyDocument, type Kind, pageOf } from "#/api/kinds";
import { done } from "#/components/notify";
import { type Opinion, useDerivedId, useOpinion } from "./analysis";
import { merged } from "./merge";
import type { Opened } from "./opening";
import { type Conflict, useSaving } from "./saving";
import { edited, read, type Value } from "./yaml";

// Fields stand in this order, wherever they were set.
const ORDER = ["apiVersion", "kind", "metadata", "spec", "status"];

/** The work on one document: its text is the truth, and a form is a way to change it. */
export function useEditing(kind: Kind, opened: Opened) {
  const [text, setText] = useState(opened.text);
  // While the text cannot be read, the form shows what it said last.
  const [good, setGood] = useState(opened.text);
  const [base, setBase] = useState(opened.text);
  const [tag, setTag] = useState(opened.tag);
  const [wasTried, setTried] = useState(false);
  const isDone = useRef(false);
  const navigate = useNavigate();
  const { fault } = useMemo(() => read(text), [text]);
  const value = useMemo((): Value => read(good).value ?? {}, [good]);
  const opinion = useOpinion(kind, value);
  const derived = useDerivedId(opened.id === null ? value.metadata?.name : undefined).id;

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
    onTag: setTag,
    onSaved: (saved: AnyDocument) => {
      isDone.current = true;
      done(`Saved ${kind.one} ${saved.name}.`);
      void navigate(pageOf(kind.name, saved.id));
    },
  });
  const submit = () => {
    setTried(true);
    // What is known to be wrong has no plan: the server refuses it in place.
    if (opened.id !== null && (opinion.isChecking || opinion.isValid)) saving.ask({ about: "plan" });
    else void saving.apply();
  };
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
    submit,
    problems: shown(opinion, saving.refused, wasTried),
    /** Goes on from what somebody else has saved. */
    rebase: ({ theirs, tag: saved }: Conflict, keep: "theirs" | "mine") => {
      setTag(saved);
      setBase(theirs);
      if (keep === "theirs") write(theirs);
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
