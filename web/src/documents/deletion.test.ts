import { afterEach, describe, expect, it, vi } from "vitest";
import { unmarkDeleted } from "#/api/deleted";
import { one } from "#/api/documents";
import { type AnyDocument, KINDS, type KindName } from "#/api/kinds";
import { deleteAll, lookUp, losses, type Outcome } from "./deletion";

const document = (kind: KindName, id: string, more = {}) =>
  ({ kind, id, name: id, metadata: { name: id }, spec: {}, ...more }) as AnyDocument;

const referrer = (kind: KindName, id: string) => ({ kind, id, name: id, path: "spec.source" });

/** A server that knows who refers to what, and refuses to delete what is referred to. */
function serve(referrers: Record<string, ReturnType<typeof referrer>[]>): string[] {
  const asked: string[] = [];
  vi.stubGlobal("fetch", async (request: Request) => {
    const path = new URL(request.url).pathname;
    asked.push(`${request.method} ${path}`);
    const found = referrers[path] ?? [];
    if (request.method === "GET")
      return Response.json({ ...document("Stream", path.split("/")[2]!), referrers: found });
    if (found.length === 0) return new Response(null, { status: 204 });
    const errors = [{ code: "referenced", message: "it is referred to", path: null, hint: null }];
    return Response.json({ ...errors[0], errors }, { status: 409 });
  });
  return asked;
}

afterEach(() => vi.unstubAllGlobals());

describe("deletion", () => {
  it("finds who refers to a document, directly or through others", async () => {
    serve({ "/streams/s": [referrer("Source", "a")], "/sources/a": [referrer("Pipeline", "p")] });
    const plan = await lookUp([document("Stream", "s")]);
    expect(plan.held.get("Stream/s")?.map(({ id }) => id)).toEqual(["a"]);
    expect(plan.dependents).toHaveLength(2);
  });

  it("does not count referrers that are deleted as well", async () => {
    serve({ "/streams/s": [referrer("Pipeline", "p")] });
    const plan = await lookUp([document("Stream", "s"), document("Pipeline", "p")]);
    expect(plan.held.size).toBe(0);
  });

  it("deletes what refers before what is referred to, and tells what was refused", async () => {
    const asked = serve({ "/streams/held": [referrer("Task", "t")] });
    const outcomes: Outcome[] = [];
    const doomed = [document("Stream", "held"), document("Stream", "s"), document("Pipeline", "p")];
    await deleteAll(doomed, (outcome) => outcomes.push(outcome));
    expect(asked[0]).toBe("DELETE /pipelines/p");
    const refused = outcomes.filter(({ problems }) => problems.length > 0);
    expect(refused.map((each) => [each.document.id, each.problems[0]?.code])).toEqual([
      ["held", "referenced"],
    ]);
  });

  it("asks the server nothing about a document that it has deleted, until it exists again", async () => {
    const asked = serve({ "/streams/stays": [referrer("Task", "t")] });
    const { Stream } = KINDS;
    await deleteAll([document("Stream", "gone"), document("Stream", "stays")], () => {});
    const before = asked.length;
    await expect(one(Stream, "gone")).rejects.toMatchObject({ status: 404, code: "not_found" });
    expect(asked).toHaveLength(before);
    await expect(one(Stream, "stays")).resolves.toMatchObject({ id: "stays" });
    unmarkDeleted("/streams/gone");
    await expect(one(Stream, "gone")).resolves.toMatchObject({ id: "gone" });
  });

  it("says what does not come back", () => {
    expect(losses([document("Sink", "s")])).toEqual([]);
    expect(losses([document("Stream", "s")])[0]).toMatch(/deletes its events/);
  });
});
