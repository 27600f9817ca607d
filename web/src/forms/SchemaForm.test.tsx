import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useState } from "react";
import { describe, expect, it, vi } from "vitest";
import { parse } from "yaml";
import type { Problem } from "#/api/client";
import catalogue from "#/test/catalogue.json";
import { render } from "#/test/render";
import { type FormContext, focusPath, type JsonSchema, SchemaForm } from "./SchemaForm";
import { unitOf, withUnit } from "./units";

// A variable may stand in place of any value.
const VARIABLE = `\${SIZE:-10}`;

type Value = Record<string, unknown>;

const component = (role: string, type: string) =>
  catalogue.find((each) => each.role === role && each.type === type)!;
const schemaOf = (role: string, type: string) => component(role, type).schema as unknown as JsonSchema;

/** A form that keeps its value, as pages do. */
function Kept({ schema, initial, seen, ...rest }: KeptProps) {
  const [value, setValue] = useState(initial);
  const change = (next: Value) => {
    seen(next);
    setValue(next);
  };
  return <SchemaForm schema={schema} value={value} onChange={change} path="spec" {...rest} />;
}

interface KeptProps {
  schema: JsonSchema;
  initial: Value;
  seen: (next: Value) => void;
  problems?: Problem[];
  context?: FormContext;
}

function open(schema: JsonSchema, initial: Value, rest: Partial<KeptProps> = {}) {
  const seen = vi.fn<(next: Value) => void>();
  render(<Kept schema={schema} initial={initial} seen={seen} {...rest} />);
  return seen;
}

/** Everything that can be read on the page, in inputs too. */
function shown(): string {
  const inputs = [...document.querySelectorAll<HTMLInputElement>("input, textarea")].map(
    (each) => each.value,
  );
  const lines = [...document.querySelectorAll(".cm-content")].map((editor) =>
    [...editor.querySelectorAll(".cm-line")].map((line) => line.textContent).join("\n"),
  );
  return [document.body.textContent, ...inputs, ...lines].join("\n");
}

function leaves(value: unknown, name = ""): string[] {
  if (Array.isArray(value)) return value.flatMap((each) => leaves(each, name));
  if (typeof value === "object" && value !== null) {
    return Object.entries(value).flatMap(([key, each]) => leaves(each, key));
  }
  if (typeof value === "boolean") return [];
  const unit = unitOf(name);
  return [unit && typeof value === "number" ? withUnit(value, unit) : String(value).trimEnd()];
}

describe("a form of each component", () => {
  it.each(catalogue.map((each) => [each.role, each.type, each] as const))(
    "shows all of the example of the %s %s and changes nothing",
    async (_role, _type, { schema, example }) => {
      const value = parse(example) as Value;
      const seen = open(schema as unknown as JsonSchema, value, { context: { columns: [] } });
      const { type: _, ...rest } = value;
      await waitFor(() => {
        for (const leaf of leaves(rest)) expect(shown()).toContain(leaf);
      });
      expect(seen).not.toHaveBeenCalled();
    },
  );
});

describe("a form", () => {
  it("takes an emptied field out and shows the default in its place", async () => {
    const user = userEvent.setup();
    const seen = open(schemaOf("sink", "console"), { type: "console", max_rows: 5 });
    await user.clear(screen.getByLabelText("Max rows"));
    expect(seen).toHaveBeenLastCalledWith({ type: "console" });
    expect(screen.getByLabelText("Max rows")).toHaveAttribute("placeholder", "default 20");
  });

  it("reads units", async () => {
    const user = userEvent.setup();
    const seen = open(schemaOf("source", "http"), { type: "http" });
    await user.type(screen.getByLabelText("Max body bytes"), "1 MiB");
    expect(seen).toHaveBeenLastCalledWith({ type: "http", max_body_bytes: 1024 ** 2 });
  });

  it("reads durations as people write them and tells how it understood them", async () => {
    const user = userEvent.setup();
    const seen = open(schemaOf("processor", "window"), { type: "window", kind: "tumbling" });
    const size = screen.getByLabelText("Size");
    await user.type(size, "90 s");
    expect(seen).toHaveBeenLastCalledWith({ type: "window", kind: "tumbling", size: "90s" });
    expect(size).toHaveAccessibleDescription(/= 1 min 30 s \(90,000 ms\)/);
    await user.clear(size);
    await user.type(size, "1500");
    expect(seen).toHaveBeenLastCalledWith({ type: "window", kind: "tumbling", size: "1500ms" });
    await user.clear(size);
    await user.type(size, "soon");
    expect(size).toHaveAccessibleDescription(/Enter a value such as/);
  });

  it("hides a field without effect, and shows the reason if it is set", async () => {
    const user = userEvent.setup();
    const seen = open(schemaOf("processor", "window"), { type: "window", kind: "session", size: "1m" });
    expect(screen.queryByLabelText("Slide")).not.toBeInTheDocument();
    expect(screen.getByLabelText("Gap")).toBeInTheDocument();
    expect(screen.getByLabelText("Size")).toHaveAttribute("readonly");
    expect(screen.getByText(/No effect: only with/)).toHaveTextContent(
      "kind: tumbling or hopping or sliding",
    );
    await user.click(screen.getByRole("button", { name: "Remove Size" }));
    expect(seen).toHaveBeenLastCalledWith({ type: "window", kind: "session" });
    expect(screen.queryByLabelText("Size")).not.toBeInTheDocument();
  });

  it("keeps what is no number as it was written", async () => {
    const user = userEvent.setup();
    const seen = open(schemaOf("source", "http"), { type: "http", max_body_bytes: VARIABLE });
    expect(screen.getByLabelText("Max body bytes")).toHaveValue(VARIABLE);
    await user.clear(screen.getByLabelText("Max body bytes"));
    await user.type(screen.getByLabelText("Max body bytes"), "much");
    expect(seen).toHaveBeenLastCalledWith({ type: "http", max_body_bytes: "much" });
    expect(screen.getByText(/Enter a value such as/)).toBeInTheDocument();
  });

  it("shows problems at their fields, and others on top", async () => {
    const problem = (path: string, message: string): Problem => ({ code: "x", message, path, hint: null });
    open(
      schemaOf("processor", "mask"),
      { type: "mask", fields: [{ field: "card", method: "hash" }] },
      { problems: [problem("spec.fields[0].method", "not this"), problem("spec.nothing", "unknown field")] },
    );
    expect(screen.getByLabelText("Method *", { selector: "input" })).toHaveAccessibleDescription(/Not this/);
    expect(screen.getByRole("alert")).toHaveTextContent("unknown field");
    await userEvent.setup().click(screen.getByRole("button", { name: "Go to Method" }));
    expect(screen.getByLabelText("Method *", { selector: "input" })).toHaveFocus();
  });

  it("finds the nearest field of a path, also in a fold", () => {
    open(schemaOf("processor", "http"), { type: "http", url: "http://x" });
    expect(focusPath("spec.retry.statuses[1]")).toBe(true);
    expect(document.activeElement?.closest("[data-path]")).toHaveAttribute(
      "data-path",
      "spec.retry.statuses",
    );
    expect(document.activeElement?.closest("details")).toHaveAttribute("open");
    expect(focusPath("elsewhere.url")).toBe(false);
  });

  it("adds, moves and removes cards", async () => {
    const user = userEvent.setup();
    const rules = [
      { when: "a", sinks: ["one"] },
      { when: "b", sinks: ["two"] },
    ];
    const seen = open(schemaOf("processor", "route"), { type: "route", rules });
    await user.click(screen.getByRole("button", { name: "Move Rules 2 up" }));
    expect(seen.mock.lastCall![0].rules).toEqual([rules[1], rules[0]]);
    await user.click(screen.getByRole("button", { name: "Remove Rules 1" }));
    expect(seen.mock.lastCall![0].rules).toEqual([rules[0]]);
    await user.click(screen.getByRole("button", { name: "Add to Rules" }));
    expect(seen.mock.lastCall![0].rules).toEqual([rules[0], {}]);
  });

  it("edits maps row by row", async () => {
    const user = userEvent.setup();
    const seen = open(schemaOf("processor", "rename"), { type: "rename", fields: { ts: "time" } });
    await user.click(screen.getByRole("button", { name: "Add to Fields" }));
    expect(seen).not.toHaveBeenCalled();
    await user.type(screen.getByRole("combobox", { name: "Fields: name 2" }), "zip");
    await user.type(screen.getByLabelText("Fields: zip"), "code");
    expect(seen.mock.lastCall![0].fields).toEqual({ ts: "time", zip: "code" });
    await user.click(screen.getByRole("button", { name: "Remove ts from Fields" }));
    expect(seen.mock.lastCall![0].fields).toEqual({ zip: "code" });
  });

  it("changes between shapes of one value", async () => {
    const user = userEvent.setup();
    const seen = open(schemaOf("processor", "sample"), { type: "sample", rate: 0.5, by: ["customer"] });
    const kinds = within(screen.getByRole("radiogroup", { name: "By: kind" }));
    expect(kinds.getByRole("radio", { name: "list" })).toBeChecked();
    await user.click(kinds.getByRole("radio", { name: "one of these" }));
    expect(seen).toHaveBeenLastCalledWith({ type: "sample", rate: 0.5 });
    expect(kinds.getByRole("radio", { name: "one of these" })).toBeChecked();
  });

  it("lets a limit be none at all", async () => {
    const user = userEvent.setup();
    const schema: JsonSchema = {
      type: "object",
      properties: {
        keep_ms: { anyOf: [{ type: "integer" }, { type: "null" }], default: 1000, description: "How long." },
      },
    };
    const seen = open(schema, {});
    expect(screen.getByLabelText("Keep time")).toHaveAttribute("placeholder", "default 1 s");
    await user.click(screen.getByRole("checkbox", { name: "Keep time: no limit" }));
    expect(seen).toHaveBeenLastCalledWith({ keep_ms: null });
    await user.click(screen.getByRole("checkbox", { name: "Keep time: no limit" }));
    expect(seen).toHaveBeenLastCalledWith({});
  });

  it("shows what does not belong where it stands", () => {
    open(schemaOf("processor", "http"), { type: "http", url: "u", retry: 3, headers: VARIABLE });
    expect(shown()).toContain(VARIABLE);
  });

  it("can be read only", () => {
    open(
      schemaOf("processor", "mask"),
      { type: "mask", fields: [{ field: "card", method: "hash" }] },
      {
        context: { readOnly: true },
      },
    );
    expect(screen.queryByRole("button", { name: /Remove|Add/ })).not.toBeInTheDocument();
    expect(screen.getByLabelText("Field *")).toHaveAttribute("readonly");
  });
});
