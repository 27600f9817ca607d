import { CompletionContext, type CompletionResult, type CompletionSource } from "@codemirror/autocomplete";
import { EditorState } from "@codemirror/state";
import { describe, expect, it } from "vitest";
import type { Language } from "./language";
import { support } from "./support";

const COLUMNS = [
  { name: "amount", type: "double" },
  { name: "line2", type: "string" },
];
const FUNCTIONS = [{ name: "log10", usage: "log10(x)", example: "" }];

/** The labels that all sources of completion offer at the end of a text. */
async function offered(language: Language, text: string): Promise<string[]> {
  const state = EditorState.create({ doc: text, extensions: support(language, COLUMNS, FUNCTIONS as never) });
  const context = new CompletionContext(state, text.length, false);
  const sources = state.languageDataAt<CompletionSource>("autocomplete", text.length);
  const results = await Promise.all(sources.map((source) => source(context)));
  return results
    .filter((each): each is CompletionResult => each !== null)
    .flatMap(({ options }) => options.map(({ label }) => label));
}

describe("completion", () => {
  it.each(["SELECT 1", "SELECT amount * 1.1", "WHERE amount > 10", "LIMIT 2", "SELECT 1e5"])(
    "offers nothing in SQL after the number of %s",
    async (text) => expect(await offered("sql", text)).toEqual([]),
  );

  it("offers columns, functions and keywords in SQL", async () => {
    expect(await offered("sql", "SELECT a")).toEqual(expect.arrayContaining(["amount", "log10", "SELECT"]));
    expect(await offered("sql", "SELECT line2")).toContain("line2");
  });

  it.each(["let a = 1", "event.amount * 1.19", "x > 10"])(
    "offers no columns in JavaScript after the number of %s",
    async (text) => expect(await offered("javascript", text)).not.toContain("amount"),
  );

  it("offers columns in JavaScript", async () => {
    expect(await offered("javascript", "event.am")).toContain("amount");
    expect(await offered("javascript", "event.line2")).toContain("line2");
  });
});
