import { syntaxHighlighting } from "@codemirror/language";
import { MergeView, unifiedMergeView } from "@codemirror/merge";
import { EditorState, type Extension } from "@codemirror/state";
import { EditorView, lineNumbers } from "@codemirror/view";
import { classHighlighter } from "@lezer/highlight";
import { Text, useComputedColorScheme } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import { useEffect, useRef } from "react";
import classes from "./editor.module.css";
import type { Language } from "./language";
import { support } from "./support";

interface Props {
  before: string;
  after: string;
  language: Language;
  /** What the two texts are, for those who do not see their sides. */
  labels?: [string, string];
}

const FOLD = { margin: 3, minSize: 6 };

/** Two texts and what differs between them: side by side, or in one column on small screens. */
export default function DiffView({ before, after, language, labels = ["Before", "After"] }: Props) {
  const parent = useRef<HTMLDivElement>(null);
  const isNarrow = useMediaQuery("(max-width: 48em)") ?? false;
  const isDark = useComputedColorScheme("light") === "dark";
  const [first, second] = labels;
  useEffect(() => {
    const common = (label: string): Extension[] => [
      EditorState.readOnly.of(true),
      EditorView.darkTheme.of(isDark),
      EditorView.lineWrapping,
      EditorView.contentAttributes.of({ "aria-label": label, "aria-readonly": "true" }),
      lineNumbers(),
      syntaxHighlighting(classHighlighter),
      support(language, [], []),
    ];
    const made = isNarrow
      ? new EditorView({
          parent: parent.current!,
          doc: after,
          extensions: [
            ...common(`${first} and ${second}`),
            unifiedMergeView({ original: before, mergeControls: false, collapseUnchanged: FOLD }),
          ],
        })
      : new MergeView({
          parent: parent.current!,
          a: { doc: before, extensions: common(first) },
          b: { doc: after, extensions: common(second) },
          collapseUnchanged: FOLD,
        });
    return () => made.destroy();
  }, [before, after, language, first, second, isNarrow, isDark]);
  return (
    <>
      {before === after && (
        <Text size="sm" c="dimmed">
          No differences.
        </Text>
      )}
      <div ref={parent} className={classes.editor} data-diff />
    </>
  );
}
