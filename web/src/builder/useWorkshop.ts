import { useHotkeys } from "@mantine/hooks";
import { useCallback, useEffect, useMemo, useReducer, useRef, useState } from "react";
import { type AnyDocument, kindAt, type Place } from "#/api/kinds";
import { done } from "#/components/notify";
import { type Conflict, useSaving } from "#/documents/editing/saving";
import type { Value } from "#/documents/editing/yaml";
import type { JsonSchema } from "#/forms/SchemaForm";
import type { Tested } from "#/testing/cases";
import type { Catalogue } from "./catalogue";
import { type Check, useCheck } from "./check";
import type { Adding, Builder } from "./context";
import { dropDraft, keepDraft } from "./drafts";
import * as model from "./model";
import type { Opened } from "./opening";
import { viewOf } from "./parts";
import { reduce, start } from "./state";

interface Given {
  place: Place;
  id: string | null;
  opened: Opened;
  catalogue: Catalogue;
  root: JsonSchema;
  onAdd: (adding: Adding) => void;
  onTests: () => void;
  onSaved: (saved: AnyDocument) => void;
}

/** The state of the builder and what can be done to it. */
export function useWorkshop({ place, id, opened, catalogue, root, onAdd, onTests, onSaved }: Given) {
  const [state, act] = useReducer(reduce, opened, ({ text, goodText }) => start(text, goodText));
  const [tag, setTag] = useState(opened.tag);
  const [run, setRun] = useState<{ value: Value; tested: Tested } | null>(null);
  const isDone = useRef(false);
  const { value, fault, selected, history } = state;
  const view = useMemo(() => viewOf(place, value), [place, value]);
  const checked = useCheck(place, value, fault === null);
  const saving = useSaving({
    kind: kindAt(place)!,
    id,
    value,
    tag,
    onTag: setTag,
    onSaved: (saved) => {
      isDone.current = true;
      dropDraft(place, id);
      onSaved(saved);
    },
  });
  const { refused } = saving;
  const check = useMemo((): Check => {
    if (!refused) return checked;
    const others = checked.errors.filter((each) => !refused.some((problem) => problem.path === each.path));
    return { ...checked, errors: [...refused, ...others], isValid: false };
  }, [checked, refused]);

  const isChanged = history.text !== opened.base;
  useEffect(() => {
    if (isDone.current) return;
    if (isChanged) {
      const { text } = history;
      keepDraft(place, id, { text, goodText: state.goodText, base: opened.base, tag, at: Date.now() });
    } else {
      dropDraft(place, id);
    }
  }, [place, id, history, state.goodText, opened.base, tag, isChanged]);

  const undo = useCallback(() => act({ do: "undo" }), []);
  const redo = useCallback(() => act({ do: "redo" }), []);
  // Inside of fields and editors the keys are theirs.
  useHotkeys([
    ["mod+Z", undo],
    ["mod+shift+Z", redo],
    ["mod+Y", redo],
  ]);

  const builder = useMemo((): Builder => {
    const edit: Builder["edit"] = (change, tag = undefined) =>
      act({ do: "edit", edit: change, tag: tag ?? null, now: Date.now() });
    return {
      place,
      id,
      saved: opened.saved?.status ?? null,
      value,
      view,
      check,
      selected,
      isStale: fault !== null,
      catalogue,
      root,
      edit,
      select: (key) => act({ do: "select", key }),
      add: onAdd,
      tested: run?.value === value ? run.tested : null,
      setTested: (tested) => setRun({ value, tested }),
      showTests: onTests,
      move: (group, from, to) => {
        const count = group === "step" ? view.steps.length : view.sinks.length;
        if (to >= 0 && to < count) edit((text) => model.move(text, place, group, from, to));
      },
      duplicate: (part) => {
        if (part.group !== "source")
          edit((text) => model.duplicate(text, place, part.group as "step", part.index));
      },
      remove: (part) => {
        if (part.group === "source") return;
        edit((text) => model.remove(text, place, part.group as "step", part.index));
        done(`Removed ${part.id}`, undo);
      },
    };
  }, [
    place,
    id,
    opened.saved,
    value,
    view,
    check,
    selected,
    fault,
    catalogue,
    root,
    run,
    onAdd,
    onTests,
    undo,
  ]);

  return {
    state,
    builder,
    saving,
    isChanged,
    isDone,
    undo,
    redo,
    type: (text: string) => act({ do: "type", text, now: Date.now() }),
    restore: () => act({ do: "restore" }),
    /** Goes on from what somebody else has saved. */
    rebase: ({ theirs, tag }: Conflict, keep: "theirs" | "mine") => {
      setTag(tag);
      if (keep === "theirs") act({ do: "load", text: theirs, now: Date.now() });
    },
    discard: () => {
      isDone.current = true; // so that nothing writes it again
      dropDraft(place, id);
    },
  };
}

export type Work = ReturnType<typeof useWorkshop>;
