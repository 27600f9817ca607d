import { describe, expect, it } from "vitest";
import { edited, read } from "#/documents/editing/yaml";
import { emptyOf, templateOf, templatesOf } from "./templates";

const all = [...templatesOf("pipelines"), ...templatesOf("tasks")];

describe("templates", () => {
  it("are the examples, ten pipelines at least", () => {
    expect(templatesOf("pipelines").length).toBeGreaterThanOrEqual(10);
    expect(templatesOf("tasks").map(({ title }) => title)).toEqual(["Stream → SQL → stream"]);
  });

  it.each(all)("$title says what it does, and is written as the builder writes", (template) => {
    expect(template.title).not.toBe("");
    expect(template.about).toMatch(/\.$/);
    expect(template.parts).toContain(" → ");
    expect(read(template.text).fault).toBeNull();
    expect(edited(template.text, () => {})).toBe(template.text);
  });

  it("names what it refers to", () => {
    const { title, about, needs, text } = templateOf(
      "# T\n# One.\n# Two.\nkind: Stream\nmetadata: {name: My Orders}\n---\nkind: Task\nmetadata: {name: t}\n",
    );
    expect({ title, about, text }).toEqual({
      title: "T",
      about: "One. Two.",
      text: "kind: Task\nmetadata: {name: t}\n",
    });
    expect(needs.map(({ kind, id }) => `${kind} ${id}`)).toEqual(["Stream my_orders"]);
  });

  it("can be empty", () => {
    for (const place of ["pipelines", "tasks"] as const) {
      expect(read(emptyOf(place)).fault).toBeNull();
      expect(edited(emptyOf(place), () => {})).toBe(emptyOf(place));
    }
  });
});
