import { closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { bracketMatching, indentOnInput, syntaxHighlighting } from "@codemirror/language";
import { setDiagnostics } from "@codemirror/lint";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import { Compartment, EditorState, type Extension } from "@codemirror/state";
import { EditorView, highlightSpecialChars, keymap, lineNumbers } from "@codemirror/view";
import { classHighlighter } from "@lezer/highlight";
import { useComputedColorScheme } from "@mantine/core";
import { useEffect, useRef } from "react";
import { diagnosticsOf } from "./diagnostics";
import classes from "./editor.module.css";
import { useFunctions } from "./functions";
import type { EditorProps } from "./language";
import { support } from "./support";

/** How high an editor is from which on it is a page of code rather than a line. */
const LARGE = 100;

const LEAVE = "Tab indents; press Escape and then Tab to leave the editor.";

/** A text editor with highlighting, completion and marks. As high as its text, within limits. */
export default function CodeEditor(props: EditorProps) {
  const { language, value, readOnly, label, minHeight = 36, maxHeight } = props;
  const columns = useSame(props.columns);
  const tables = useSame(props.tables);
  const problems = useSame(props.problems);
  const isLarge = minHeight >= LARGE || language === "yaml";
  const parent = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView>(null);
  const parts = useRef({ language: new Compartment(), mode: new Compartment(), scheme: new Compartment() });
  const latest = useRef(props);
  latest.current = props;
  // What was typed comes back as the value, maybe later than the next letter: that must not undo the letter.
  const sent = useRef<string[]>([]);
  const scheme = useComputedColorScheme("light");
  const functions = useFunctions(language === "sql" && !readOnly);

  // biome-ignore lint/correctness/useExhaustiveDependencies: made once; what changes is brought in below
  useEffect(() => {
    const { language: lang, mode, scheme: colours } = parts.current;
    const made = new EditorView({
      parent: parent.current!,
      state: EditorState.create({
        doc: value,
        extensions: [
          ...basics(isLarge),
          lang.of([]),
          mode.of([]),
          colours.of([]),
          EditorView.updateListener.of((update) => {
            if (!update.docChanged) return;
            const text = update.state.doc.toString();
            if (text === latest.current.value) return;
            sent.current.push(text);
            latest.current.onChange?.(text);
          }),
        ],
      }),
    });
    view.current = made;
    return () => made.destroy();
  }, []);

  useEffect(() => {
    const own = sent.current.indexOf(value);
    if (own >= 0) {
      sent.current.splice(0, own + 1);
      return;
    }
    sent.current = [];
    const { state } = view.current!;
    if (state.doc.toString() === value) return;
    view.current!.dispatch({ changes: { from: 0, to: state.doc.length, insert: value } });
  }, [value]);

  useEffect(() => {
    view.current!.dispatch({
      effects: parts.current.language.reconfigure(support(language, columns ?? [], functions, tables)),
    });
  }, [language, columns, functions, tables]);

  useEffect(() => {
    const indents = !readOnly && (language === "javascript" || language === "yaml");
    view.current!.dispatch({
      effects: parts.current.mode.reconfigure([
        EditorState.readOnly.of(readOnly ?? false),
        indents ? keymap.of([indentWithTab]) : [],
        EditorView.contentAttributes.of({
          "aria-label": label,
          ...(indents ? { "aria-description": LEAVE } : {}),
          ...(readOnly ? { "aria-readonly": "true" } : {}),
        }),
      ]),
    });
  }, [readOnly, label, language]);

  useEffect(() => {
    view.current!.dispatch({
      effects: parts.current.scheme.reconfigure(EditorView.darkTheme.of(scheme === "dark")),
    });
  }, [scheme]);

  useEffect(() => {
    const { state } = view.current!;
    view.current!.dispatch(setDiagnostics(state, diagnosticsOf(state.doc, problems ?? [])));
  }, [problems]);

  return (
    <div
      ref={parent}
      className={classes.editor}
      data-large={isLarge || undefined}
      style={
        { "--editor-min": `${minHeight}px`, "--editor-max": maxHeight ? `${maxHeight}px` : "none" } as object
      }
    />
  );
}

// Lists are often made anew with the same content: to bring them in again would close an open completion.
function useSame<T>(given: T): T {
  const last = useRef(given);
  if (JSON.stringify(last.current) !== JSON.stringify(given)) last.current = given;
  return last.current;
}

function basics(isLarge: boolean): Extension[] {
  return [
    highlightSpecialChars(),
    history(),
    indentOnInput(),
    bracketMatching(),
    closeBrackets(),
    syntaxHighlighting(classHighlighter),
    EditorView.lineWrapping,
    isLarge ? [lineNumbers(), highlightSelectionMatches(), keymap.of(searchKeymap)] : [],
    keymap.of([...closeBracketsKeymap, ...completionKeymap, ...defaultKeymap, ...historyKeymap]),
  ];
}
