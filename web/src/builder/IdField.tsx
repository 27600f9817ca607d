import { TextInput } from "@mantine/core";
import { useEffect, useState } from "react";
import { problemsBelow, sentence } from "#/forms/paths";
import { useBuilder } from "./context";
import type { Part } from "./parts";

/** What a part is called. It changes when one is done typing, because what names it follows. */
export function IdField({ part, onChange }: { part: Part; onChange: (id: string) => void }) {
  const { check, isStale } = useBuilder();
  const given = String(part.value.id ?? "");
  const [text, setText] = useState(given);
  useEffect(() => setText(given), [given]);
  const path = `${part.path}.id`;
  const commit = () => {
    if (text.trim() !== given) onChange(text.trim());
  };
  return (
    <div data-path={path}>
      <TextInput
        label="ID"
        description="Routes and tests that refer to this id are updated when you change it."
        placeholder={`default: ${part.id}`}
        disabled={isStale}
        value={text}
        error={sentence(problemsBelow(check.errors, path))}
        onChange={(event) => setText(event.currentTarget.value)}
        onBlur={commit}
        onKeyDown={(event) => {
          if (event.key === "Enter") commit();
          if (event.key === "Escape") setText(given);
        }}
      />
    </div>
  );
}
