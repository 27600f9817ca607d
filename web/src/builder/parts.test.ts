import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { derivedId } from "./parts";

// The names and ids that the server is tested with; the server alone derives those that are not ASCII.
const VECTORS: [string, string][] = JSON.parse(readFileSync("../tests/specs/ids.json", "utf8"));

describe("the id of a name", () => {
  it("is the one that the server derives", () => {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: ASCII begins with them
    const known = VECTORS.filter(([name]) => /^[\x00-\x7f]*$/.test(name));
    expect(known.length).toBeGreaterThan(4);
    for (const [name, id] of known) expect(derivedId(name)).toBe(id);
  });
});
