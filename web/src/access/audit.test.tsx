import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, describe, expect, it, vi } from "vitest";
import { takeSession } from "#/api/session";
import { session } from "#/test/people";
import { render } from "#/test/render";
import { type Asked, serve } from "#/test/server";
import AuditPage from "./AuditPage";
import type { AuditEntry } from "./types";

const entry = (id: number, changes: Partial<AuditEntry> = {}): AuditEntry => ({
  id,
  at: "2026-01-01T00:00:00Z",
  user: "anna",
  via: "password",
  address: "127.0.0.1",
  action: "pipeline.update",
  target: `pipeline/p${id}`,
  status: 200,
  before: null,
  after: null,
  ...changes,
});

const queries = (asked: Asked[]) => asked.map(({ query }) => Object.fromEntries(new URLSearchParams(query)));

afterEach(() => vi.unstubAllGlobals());

describe("the audit log", () => {
  it("is paged from the newest entry on", async () => {
    takeSession(session("admin"));
    const asked = serve({ "GET /audit": { entries: [entry(9), entry(8, { status: 403 })], next: 8 } });
    render(<AuditPage />);
    const row = (await screen.findByRole("cell", { name: "pipeline/p8" })).closest("tr")!;
    expect(row).toHaveTextContent("refused (403)");
    expect(screen.getByRole("button", { name: "Newer" })).toBeDisabled();
    await userEvent.click(screen.getByRole("button", { name: "Older" }));
    await waitFor(() => expect(queries(asked)).toEqual([{ limit: "50" }, { before: "8", limit: "50" }]));
    expect(screen.getByText("page 2")).toBeInTheDocument();
    await userEvent.click(screen.getByRole("button", { name: "Newer" }));
    expect(screen.getByText("page 1")).toBeInTheDocument();
  });

  it("is filtered by user, action and target, which stand in the address", async () => {
    takeSession(session("admin"));
    const asked = serve({ "GET /audit": { entries: [], next: null } });
    render(<AuditPage />, { at: "/audit?user=anna" });
    expect(await screen.findByText("No entry has exactly these values.")).toBeInTheDocument();
    await userEvent.type(screen.getByLabelText("Action", { selector: "input" }), "flow.pause");
    await userEvent.type(screen.getByLabelText("Target", { selector: "input" }), "pipeline/orders");
    await waitFor(() =>
      expect(queries(asked).at(-1)).toEqual({
        user: "anna",
        action: "flow.pause",
        target: "pipeline/orders",
        limit: "50",
      }),
    );
    await userEvent.click(screen.getByRole("button", { name: "Clear filters" }));
    expect(screen.getByLabelText("User", { selector: "input" })).toHaveValue("");
  });

  it("shows how something was before and after", async () => {
    takeSession(session("admin"));
    const changed = entry(7, { before: { spec: { limit: 10 } }, after: { spec: { limit: 20 } } });
    serve({ "GET /audit": { entries: [changed], next: null } });
    render(<AuditPage />);
    await userEvent.click(await screen.findByRole("button", { name: /^Show pipeline.update/ }));
    const drawer = await screen.findByRole("dialog", { name: "pipeline.update pipeline/p7" });
    expect(await within(drawer).findByLabelText("Before")).toHaveTextContent("limit: 10");
    expect(within(drawer).getByLabelText("After")).toHaveTextContent("limit: 20");
  });
});
