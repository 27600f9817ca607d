import { Text } from "@codemirror/state";
import { EditorView } from "@codemirror/view";
import { screen, waitFor } from "@testing-library/react";
import { describe, expect, it, vi } from "vitest";
import { render } from "#/test/render";
import CodeEditor from "./CodeEditor";
import { diagnosticsOf } from "./diagnostics";
import { problemsIn } from "./places";

const problem = (message: string) => ({ code: "x", message, path: null, hint: null });

describe("the code editor", () => {
  it("shows its value, and takes another one from outside", async () => {
    const change = vi.fn();
    const { rerender } = render(
      <CodeEditor language="javascript" label="Script" value="let a = 1" onChange={change} />,
    );
    expect(screen.getByRole("textbox", { name: "Script" })).toHaveTextContent("let a = 1");
    rerender(<CodeEditor language="javascript" label="Script" value="let b = 2" onChange={change} />);
    await waitFor(() => expect(screen.getByRole("textbox")).toHaveTextContent("let b = 2"));
    expect(change).not.toHaveBeenCalled();
  });

  it("marks what is wrong", () => {
    render(
      <CodeEditor
        language="text"
        label="Query"
        value="SELECT foo FROM input"
        problems={problemsIn([problem("there is no column 'foo' (line 1, column 8)")])}
      />,
    );
    expect(document.querySelector(".cm-lintRange-error")).toHaveTextContent("foo");
  });

  it("can be read only", () => {
    render(<CodeEditor language="yaml" label="Text" value="a: 1" readOnly />);
    expect(screen.getByRole("textbox", { name: "Text" })).toHaveAttribute("aria-readonly", "true");
  });

  it("does not take its own letters back when they return late", () => {
    const at = (value: string) => (
      <CodeEditor language="text" label="Text" value={value} onChange={() => {}} />
    );
    const { rerender } = render(at(""));
    const view = EditorView.findFromDOM(document.querySelector<HTMLElement>(".cm-editor")!)!;
    view.dispatch({ changes: { from: 0, insert: "a" } });
    view.dispatch({ changes: { from: 1, insert: "b" } });
    rerender(at("a"));
    expect(view.state.doc.toString()).toBe("ab");
  });
});

describe("marks", () => {
  const text = Text.of(["SELECT foo", "FROM input"]);

  it("stand at the word, or at the line", () => {
    const [line, word] = diagnosticsOf(text, [
      { message: "word", line: 2, column: 6 },
      { message: "line", line: 1 },
    ]);
    expect(line).toMatchObject({ from: 0, to: 10 });
    expect(word).toMatchObject({ from: 16, to: 21 });
  });

  it("are left out where there is no such line", () => {
    expect(diagnosticsOf(text, [{ message: "far", line: 9 }, { message: "nowhere" }])).toEqual([]);
  });
});
