import { describe, expect, it } from "vitest";
import { type Fields, locate, read, textOf, type Value } from "#/documents/editing/yaml";
import * as model from "./model";
import { type Part, type PartKey, partAt, viewOf } from "./parts";

const TEXT = `# what this is for
kind: Pipeline
metadata: {name: two sinks} # the name
spec:
  # where it begins
  source: {type: generate, rate: 5}

  # the steps
  processors:
    # about clean
    - {id: clean, type: filter, where: amount > 0} # fast
    # about taxed
    - id: taxed # keep this id
      type: sql
      # about the query
      query: |
        SELECT id, amount
        FROM input
    # about chosen
    - id: chosen
      type: route
      rules:
        - {when: amount > 10, sinks: [lake, copy]}
      default: [copy]
  sinks:
    # about lake
    - {id: lake, type: file, path: out, format: json}
    # about copy
    - {id: copy, type: drop, required: false}
  # the tests
  tests:
    - name: one
      input: [{amount: 1}]
      given: {clean: []}
      expect:
        sinks: {lake: {count: 1}}
        steps: {clean: {dropped: 0}}
        errors: [{step: clean}]
`;

const shown = (text: string): Value => {
  const { value, fault } = read(text);
  if (!value) throw new Error(fault.message);
  return value;
};
const specOf = (text: string) => shown(text).spec as Record<string, Fields[]> & Fields;
const part = (text: string, key: PartKey): Part => partAt(viewOf("pipelines", shown(text)), key)!;
const ids = (text: string, list: "processors" | "sinks") => specOf(text)[list]!.map((each) => each.id);
const set = (text: string, key: PartKey, next: Fields) =>
  model.setPart(text, "pipelines", part(text, key), next).text;

describe("reading", () => {
  it("tells where a text is not YAML", () => {
    expect(read("kind: Pipeline\nspec: {a: [1, 2}\n").fault).toMatchObject({ line: 2 });
    expect(read("a: 1\na: 2\n").fault?.message).toMatch(/unique/);
  });

  it.each([
    ["- 1", "mapping"],
    ["spec: 3", "'spec' must be a mapping"],
    ["spec: {processors: {}}", "'processors' must be a list"],
    ["spec: {sinks: [x]}", "Each item of 'sinks'"],
    ["spec: {source: x}", "A source"],
    ["a: 1\n---\nb: 2", "multiple documents"],
  ])("does not show %j on the canvas", (text, message) => {
    expect(read(text).fault?.message).toContain(message);
  });

  it("finds the line of a place, or of the nearest one above it", () => {
    const line = (path: string) => TEXT.split("\n")[locate(TEXT, path).line - 1];
    expect(line("spec.processors[1].query")).toContain("query: |");
    expect(line("spec.processors[0].where")).toContain("id: clean");
    expect(line("spec.processors[1].nothing.at.all")).toContain("id: taxed");
    expect(line("spec.processors[2].rules[0].when")).toContain("when: amount > 10");
    expect(line("metadata.name")).toContain("two sinks");
    expect(line("spec.dead_letters")).toContain("spec:");
  });

  it("finds fields whose names have dots", () => {
    const text = "spec:\n  processors:\n    - type: rename\n      fields:\n        address.zip: code\n";
    expect(locate(text, "spec.processors[0].fields.address.zip").line).toBe(5);
  });

  it("writes scripts as blocks, and quotes what YAML 1.1 takes for true", () => {
    expect(textOf({ query: "a\nb\n", word: "yes" })).toBe('query: |\n  a\n  b\nword: "yes"\n');
  });
});

describe("steps and sinks", () => {
  it("adds a step in its place, under a free id, and keeps every comment", () => {
    const { text, select } = model.addStep(TEXT, "pipelines", 1, { type: "filter", where: "true" });
    expect(ids(text, "processors")).toEqual(["clean", "filter", "taxed", "chosen"]);
    expect(select).toBe("step:1");
    for (const comment of TEXT.match(/#.*/g)!) expect(text).toContain(comment);
    const again = model.addStep(text, "pipelines", 0, { type: "filter" }).text;
    expect(ids(again, "processors")[0]).toBe("filter_2");
  });

  it("adds lists that are not there yet, in the usual order of fields", () => {
    const empty = "kind: Pipeline\nspec:\n  batch: {max_ms: 5}\n";
    let text = model.addSink(empty, "pipelines", { type: "drop" }).text;
    text = model.addStep(text, "pipelines", 0, { type: "sql", query: "SELECT 1" }).text;
    text = model.setSource(text, "pipelines", { type: "generate" }).text;
    expect(Object.keys(specOf(text))).toEqual(["source", "processors", "sinks", "batch"]);
    expect(model.addStep("kind: Task\n", "tasks", 0, { type: "sql" }).text).toContain(
      "processors:\n    - id: sql",
    );
  });

  it("moves a step with its comments", () => {
    const { text, select } = model.move(TEXT, "pipelines", "step", 0, 2);
    expect(ids(text, "processors")).toEqual(["taxed", "chosen", "clean"]);
    expect(select).toBe("step:2");
    expect(text).toMatch(/# about clean\n\s+- \{id: clean, type: filter, where: amount > 0\} # fast/);
    expect(text).toMatch(/processors:\n\s+# about taxed\n/);
    expect(model.move(text, "pipelines", "step", 2, 0).text).toBe(
      model.move(TEXT, "pipelines", "step", 0, 0).text,
    );
  });

  it("removes a step with its comment, and no other", () => {
    const { text } = model.remove(TEXT, "pipelines", "step", 0);
    expect(ids(text, "processors")).toEqual(["taxed", "chosen"]);
    expect(text).not.toContain("# about clean");
    expect(text).toContain("# about taxed");
    expect(text).toContain("# the steps");
  });

  it("copies a step under another id", () => {
    const { text } = model.duplicate(TEXT, "pipelines", "step", 1);
    expect(ids(text, "processors")).toEqual(["clean", "taxed", "taxed_2", "chosen"]);
    expect(specOf(text).processors![2]!.query).toBe(specOf(TEXT).processors![1]!.query);
  });

  it("has a task's input and outputs, too", () => {
    let text = "kind: Task\nmetadata: {name: t}\nspec:\n  processors: []\n";
    text = model.setSource(text, "tasks", { input: "a", position: "latest" }).text;
    text = model.addSink(text, "tasks", { stream: "b" }).text;
    expect(specOf(text)).toMatchObject({ input: "a", position: "latest", outputs: [{ stream: "b" }] });
    expect(viewOf("tasks", shown(text)).sinks[0]!.id).toBe("b");
    text = model.duplicate(text, "tasks", "sink", 0).text;
    expect(viewOf("tasks", shown(text)).sinks.map((each) => each.id)).toEqual(["b", "b:2"]);
  });

  it("runs tasks in place of processors", () => {
    let text = "kind: Pipeline\nspec:\n  processors: []\n  sinks: []\n";
    text = model.addTask(text, 0, "lines").text;
    text = model.addTask(text, 1, "more").text;
    expect(specOf(text).tasks).toEqual(["lines", "more"]);
    expect("processors" in specOf(text)).toBe(false);
    text = model.move(text, "pipelines", "step", 1, 0).text;
    text = set(text, "step:0", { task: "other" });
    expect(specOf(text).tasks).toEqual(["other", "lines"]);
    text = model.remove(model.remove(text, "pipelines", "step", 0).text, "pipelines", "step", 0).text;
    expect("tasks" in specOf(text)).toBe(false);
  });
});

describe("fields", () => {
  it("sets one field and leaves the rest as it was written", () => {
    const text = set(TEXT, "step:0", { ...part(TEXT, "step:0").value, where: "amount > 5" });
    expect(text).toBe(TEXT.replace("amount > 0}", "amount > 5}"));
  });

  it("opens a mapping on one line for text of several", () => {
    const text = set(TEXT, "step:0", { id: "clean", type: "filter", where: "a > 0\nAND b > 0" });
    expect(text).toMatch(/where: \|-\n\s+a > 0\n\s+AND b > 0/);
    expect(text).toContain("# fast");
    expect(specOf(text).processors![0]!.where).toBe("a > 0\nAND b > 0");
  });

  it("removes a field that is emptied", () => {
    const text = set(TEXT, "sink:1", { id: "copy", type: "drop" });
    expect(specOf(text).sinks![1]).toEqual({ id: "copy", type: "drop" });
  });

  it("keeps the order of columns to compute", () => {
    let text = "spec:\n  processors:\n    - type: map\n      set: {a: '1', b: '2'}\n";
    text = set(text, "step:0", { type: "map", set: { b: "2", c: "3", a: "1" } });
    expect(Object.keys(specOf(text).processors![0]!.set as Fields)).toEqual(["b", "c", "a"]);
  });

  it("keeps comments of list items that stay", () => {
    let text =
      "spec:\n  processors:\n    - type: drop_fields\n      fields:\n        - a # of a\n        - b # of b\n        - c # of c\n";
    text = set(text, "step:0", { type: "drop_fields", fields: ["c", "b", "d"] });
    expect(text).toMatch(/- c # of c\n\s+- b # of b\n\s+- d/);
  });

  it("sets and takes away settings and the status", () => {
    let text = model.setSpec(TEXT, { batch: { max_ms: 20 }, restart: { policy: "never" } }, [
      "batch",
      "restart",
    ]).text;
    expect(Object.keys(specOf(text))).toEqual(["source", "processors", "sinks", "batch", "restart", "tests"]);
    text = model.setSpec(text, {}, ["batch", "restart"]).text;
    expect(text).toBe(model.setStatus(TEXT, null).text);
    expect(shown(model.setStatus(TEXT, "paused").text).status).toBe("paused");
    expect(model.setMetadata(TEXT, { name: "other" }).text).toContain("{name: other} # the name");
  });

  it("writes out aliases, so that parts can be moved", () => {
    const text = "spec:\n  sinks:\n    - &a {id: x, type: drop}\n    - *a\n";
    const moved = model.move(text, "pipelines", "sink", 1, 0).text;
    expect(specOf(moved).sinks).toHaveLength(2);
    expect(moved).not.toMatch(/[&*]/);
  });
});

describe("renaming", () => {
  it("makes routes and tests follow a sink", () => {
    const text = set(TEXT, "sink:0", { ...part(TEXT, "sink:0").value, id: "archive" });
    expect(specOf(text).processors![2]!.rules).toEqual([{ when: "amount > 10", sinks: ["archive", "copy"] }]);
    expect((specOf(text).tests![0]!.expect as Fields).sinks).toEqual({ archive: { count: 1 } });
    expect(text).toContain("# about chosen");
  });

  it("makes tests follow a step", () => {
    const text = set(TEXT, "step:0", { ...part(TEXT, "step:0").value, id: "tidy" });
    const [test] = specOf(text).tests!;
    expect(test!.given).toEqual({ tidy: [] });
    expect(test!.expect).toMatchObject({ steps: { tidy: { dropped: 0 } }, errors: [{ step: "tidy" }] });
  });

  it("does not follow to a name that another has", () => {
    const text = set(TEXT, "sink:0", { ...part(TEXT, "sink:0").value, id: "copy" });
    expect(specOf(text).processors![2]!.rules).toEqual([{ when: "amount > 10", sinks: ["lake", "copy"] }]);
  });

  it("makes routes follow the streams of a task's outputs", () => {
    const task = `spec:
  processors: [{type: route, rules: [{when: a > 1, sinks: [x]}]}]
  outputs: [{stream: x}]
`;
    const view = viewOf("tasks", shown(task));
    const { text } = model.setPart(task, "tasks", view.sinks[0]!, { stream: "y" });
    expect(specOf(text).processors![0]!.rules).toEqual([{ when: "a > 1", sinks: ["y"] }]);
  });
});

/** A generator of numbers that is the same in every run. */
function dice(seed: number) {
  let state = seed;
  return (below: number) => {
    state = (state * 1664525 + 1013904223) % 4294967296;
    return Math.floor((state / 4294967296) * below);
  };
}

describe("any sequence of edits", () => {
  it.each(Array.from({ length: 8 }, (_, seed) => seed))(
    "says in text what was done on the canvas (%i)",
    (seed) => {
      const roll = dice(seed + 1);
      let text = TEXT;
      const lists = {
        step: structuredClone(specOf(TEXT).processors!),
        sink: structuredClone(specOf(TEXT).sinks!),
      };
      const about = new Map(["clean", "taxed", "chosen", "lake", "copy"].map((id) => [id, `# about ${id}`]));
      for (let round = 0; round < 40; round++) {
        const group = roll(2) ? "step" : "sink";
        const list = lists[group];
        const at = roll(Math.max(1, list.length));
        const to = roll(Math.max(1, list.length));
        const action = roll(5);
        if (action === 0 || list.length === 0) {
          const made = { id: `n${round}`, type: group === "step" ? "filter" : "drop" };
          const where = group === "step" ? at : list.length;
          text = (
            group === "step"
              ? model.addStep(text, "pipelines", where, made)
              : model.addSink(text, "pipelines", made)
          ).text;
          list.splice(where, 0, made);
        } else if (action === 1) {
          text = model.move(text, "pipelines", group, at, to).text;
          list.splice(to, 0, ...list.splice(at, 1));
        } else if (action === 2 && list.length > 2) {
          text = model.remove(text, "pipelines", group, at).text;
          about.delete(String(list.splice(at, 1)[0]!.id));
        } else if (action === 3) {
          const next = {
            ...list[at]!,
            note: ["x", "a\nb\n", 5, true, { b: [1, { c: "yes" }] }, ["on"]][roll(6)],
          };
          text = set(text, `${group}:${at}`, next);
          list[at] = next;
        } else {
          const { note: _, ...next } = list[at]!;
          text = set(text, `${group}:${at}`, next);
          list[at] = next;
        }
        expect(specOf(text).processors).toEqual(lists.step);
        expect(specOf(text).sinks).toEqual(lists.sink);
      }
      for (const comment of about.values()) expect(text).toContain(comment);
      for (const comment of [
        "# what this is for",
        "# the name",
        "# where it begins",
        "# the steps",
        "# the tests",
      ]) {
        expect(text).toContain(comment);
      }
      expect(model.setStatus(text, null).text).toBe(text);
    },
  );
});
