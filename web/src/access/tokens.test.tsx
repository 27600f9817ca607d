import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, describe, expect, it, vi } from "vitest";
import { takeSession } from "#/api/session";
import { session } from "#/test/people";
import { render } from "#/test/render";
import { of, serve } from "#/test/server";
import { NewTokenDialog } from "./NewTokenDialog";
import TokensPage from "./TokensPage";
import type { Token } from "./types";

const token = (name: string, changes: Partial<Token> = {}): Token => ({
  id: `id-${name}`,
  name,
  role: "viewer",
  source: null,
  user: "anna",
  created_at: "2026-01-01T00:00:00Z",
  expires_at: null,
  last_used_at: null,
  ...changes,
});

const SOURCES = {
  items: [
    { id: "orders", name: "orders", metadata: { name: "orders" }, spec: { type: "http" } },
    { id: "files", name: "files", metadata: { name: "files" }, spec: { type: "file" } },
  ],
  total: 2,
};

afterEach(() => vi.unstubAllGlobals());

describe("the tokens", () => {
  it("of everybody are shown to an admin, who can look at their own only", async () => {
    takeSession(session("admin"));
    const old = token("old", { expires_at: "2026-01-02T00:00:00Z" });
    const other = token("till", { user: "bert", role: "ingest", source: "orders" });
    serve({ "GET /tokens": { tokens: [old, other] } });
    render(<TokensPage />);
    const row = (await screen.findByText("till")).closest("tr")!;
    expect(row).toHaveTextContent("bert");
    expect(row).toHaveTextContent("source orders");
    expect(screen.getByText("old").closest("tr")).toHaveTextContent("expired");
    await userEvent.click(screen.getByRole("switch", { name: "Only my tokens" }));
    expect(screen.queryByText("till")).toBeNull();
    expect(screen.getByText("old")).toBeInTheDocument();
  });

  it("have at most the role of their user", async () => {
    takeSession(session("operator"));
    serve({ "GET /tokens": { tokens: [] } });
    render(<TokensPage />);
    await userEvent.click(await screen.findByRole("button", { name: "Create a token" }));
    await userEvent.click(await screen.findByRole("combobox", { name: "Role" }));
    const roles = (await screen.findAllByRole("option")).map((each) => each.textContent);
    expect(roles.slice(0, 3)).toEqual(["viewer", "operator", "ingest"]);
    expect(roles).not.toContain("editor");
    expect(screen.queryByRole("switch")).toBeNull();
  });

  it("for one source name it", async () => {
    takeSession(session("operator"));
    const made = { ...token("till"), secret: "secret" };
    const asked = serve({
      "GET /sources": SOURCES,
      "GET /pipelines": { items: [], total: 0 },
      "POST /tokens": made,
    });
    render(<NewTokenDialog onClose={vi.fn()} />);
    const input = (label: RegExp) => screen.getByLabelText(label, { selector: "input" });
    await userEvent.type(input(/^Name/), "till");
    await userEvent.click(input(/^Role/));
    await userEvent.click(await screen.findByText("ingest"));
    await userEvent.click(input(/^Source/));
    await userEvent.click(await screen.findByText("orders"));
    expect(screen.queryByText("files")).toBeNull();
    await userEvent.click(screen.getByText("Create"));
    await waitFor(() => expect(of(asked, "POST /tokens")).toHaveLength(1));
    expect(of(asked, "POST /tokens")[0]!.content).toEqual({
      name: "till",
      role: "ingest",
      source: "orders",
      expires_in_days: 90,
    });
  });

  it("show their secret once, to be copied", async () => {
    const person = userEvent.setup(); // with a clipboard
    takeSession(session("viewer"));
    serve({ "POST /tokens": { ...token("ci"), secret: "the secret" } });
    const close = vi.fn();
    render(<NewTokenDialog onClose={close} />);
    await person.type(screen.getByLabelText(/^Name/), "ci{Enter}");
    expect(await screen.findByLabelText("The token")).toHaveTextContent("the secret");
    await person.click(screen.getByText("Copy"));
    expect(await navigator.clipboard.readText()).toBe("the secret");
    await person.click(screen.getByText("Done"));
    expect(close).toHaveBeenCalled();
  });

  it("are revoked after a question", async () => {
    takeSession(session("viewer"));
    const asked = serve({ "GET /tokens": { tokens: [token("ci")] }, "DELETE /tokens/id-ci": null });
    render(<TokensPage />);
    await userEvent.click(await screen.findByRole("button", { name: "Revoke ci" }));
    const dialog = await screen.findByRole("dialog");
    expect(of(asked, "DELETE /tokens/id-ci")).toEqual([]);
    await userEvent.click(within(dialog).getByRole("button", { name: "Revoke" }));
    await waitFor(() => expect(of(asked, "DELETE /tokens/id-ci")).toHaveLength(1));
  });
});
