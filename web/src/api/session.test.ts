import { afterEach, describe, expect, it, vi } from "vitest";
import { NO_SESSION, session } from "#/test/people";
import { of, refused, serve } from "#/test/server";
import { api, reach } from "./client";
import { includes, takeSession } from "./session";

const TOKEN = "X-CSRF-Token";

afterEach(() => vi.unstubAllGlobals());

describe("requests of a session", () => {
  it("carry its token if they change something", async () => {
    takeSession(session("editor"));
    const asked = serve({ "GET /streams": {}, "DELETE /streams/a": null, "POST /bundle": {} });
    await api.GET("/streams");
    await api.DELETE("/streams/{name}", { params: { path: { name: "a" } } });
    await reach("/bundle?mode=merge", { method: "POST", body: "{}" });
    expect(asked.map(({ headers }) => headers.get(TOKEN))).toEqual([
      null,
      "token-of-the-session",
      "token-of-the-session",
    ]);
  });

  it("carry none where there is no session", async () => {
    takeSession({ ...NO_SESSION, authentication: "off" });
    const asked = serve({ "DELETE /streams/a": null });
    await api.DELETE("/streams/{name}", { params: { path: { name: "a" } } });
    expect(asked[0]!.headers.has(TOKEN)).toBe(false);
  });

  it("that are refused have the session read again, once for all at the same time", async () => {
    takeSession(session("editor"));
    const asked = serve({
      "GET /session": session("viewer"),
      "GET /streams": refused(403, "forbidden", "needs the role editor; you have viewer"),
    });
    await Promise.all([api.GET("/streams"), api.GET("/streams")]);
    await vi.waitFor(() => expect(of(asked, "GET /session")).toHaveLength(1));
  });
});

describe("roles", () => {
  it("include the ones before", () => {
    expect(includes("admin", "viewer")).toBe(true);
    expect(includes("editor", "editor")).toBe(true);
    expect(includes("operator", "editor")).toBe(false);
  });
});
