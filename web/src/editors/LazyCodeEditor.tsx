import { Textarea } from "@mantine/core";
import { lazy, Suspense } from "react";
import type { EditorProps } from "./language";

const CodeEditor = lazy(() => import("./CodeEditor"));

/** The code editor, loaded when it is first needed; until then the text can be read. */
export function LazyCodeEditor(props: EditorProps) {
  return (
    <Suspense fallback={<Plain {...props} />}>
      <CodeEditor {...props} />
    </Suspense>
  );
}

// Read only: who had begun to type would lose the focus, and letters with it, when the editor takes its place.
function Plain({ value, label }: EditorProps) {
  return (
    <Textarea
      aria-label={label}
      value={value}
      readOnly
      autosize
      maxRows={20}
      spellCheck={false}
      styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }}
    />
  );
}
