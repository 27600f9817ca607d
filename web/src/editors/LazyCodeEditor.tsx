import { Textarea } from "@mantine/core";
import { lazy, Suspense } from "react";
import type { EditorProps } from "./language";

const CodeEditor = lazy(() => import("./CodeEditor"));

/** The code editor, loaded when it is first needed; until then the text can be read and edited plainly. */
export function LazyCodeEditor(props: EditorProps) {
  return (
    <Suspense fallback={<Plain {...props} />}>
      <CodeEditor {...props} />
    </Suspense>
  );
}

function Plain({ value, label, readOnly, onChange }: EditorProps) {
  return (
    <Textarea
      aria-label={label}
      value={value}
      readOnly={readOnly || !onChange}
      autosize
      maxRows={20}
      spellCheck={false}
      styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }}
      onChange={({ currentTarget }) => onChange?.(currentTarget.value)}
    />
  );
}
