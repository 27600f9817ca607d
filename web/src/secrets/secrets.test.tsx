import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, describe, expect, it, vi } from "vitest";
import { takeSession } from "#/api/session";
import { session } from "#/test/people";
import { render } from "#/test/render";
import { of, serve } from "#/test/server";
import { originOf, specOf } from "./origins";
import SecretsPage from "./SecretsPage";

const DB = {
  id: "db",
  name: "db",
  metadata: { name: "db", description: "", labels: {} },
  spec: { sealed: "v1.abc.def" },
  revision: 1,
  created_at: "2026-01-01T00:00:00Z",
  updated_at: "2026-01-01T00:00:00Z",
  referrers: [{ kind: "Sink", id: "orders", name: "orders" }],
};
const ONE = { "GET /secrets": { items: [DB], total: 1 }, "GET /secrets/db": DB };

afterEach(() => vi.unstubAllGlobals());

describe("secrets", () => {
  it("are listed without their values, and with what uses them", async () => {
    takeSession(session("viewer"));
    serve(ONE);
    render(<SecretsPage />);
    const row = (await screen.findByText("db")).closest("tr")!;
    expect(row).toHaveTextContent("stored encrypted");
    expect(row).not.toHaveTextContent("v1.abc");
    expect(screen.getByRole("link", { name: "orders" })).toHaveAttribute("href", "/sinks/orders");
    expect(screen.queryByRole("button")).toBeNull();
  });

  it("are created with a value that is not seen", async () => {
    takeSession(session("editor"));
    const asked = serve({ "GET /secrets": { items: [], total: 0 }, "POST /secrets": DB });
    render(<SecretsPage />);
    await userEvent.click(await screen.findByRole("button", { name: "Create a secret" }));
    await userEvent.type(await screen.findByLabelText(/^Name/), "db");
    const value = screen.getByLabelText(/^Value \*|^Value$/);
    expect(value).toHaveAttribute("type", "password");
    await userEvent.type(value, "hunter22");
    await userEvent.click(screen.getByRole("button", { name: "Create" }));
    await waitFor(() =>
      expect(of(asked, "POST /secrets").map(({ content }) => content)).toEqual([
        { metadata: { name: "db" }, spec: { value: "hunter22" } },
      ]),
    );
  });

  it("come from four places", () => {
    expect(specOf("value", " a ")).toEqual({ value: " a " });
    expect(specOf("environment", " KEY ")).toEqual({ environment: "KEY" });
    expect(specOf("vault", "billing/db#password")).toEqual({
      vault: { path: "billing/db", field: "password" },
    });
    expect(originOf({ vault: { path: "a", mount: "kv" } })).toBe("Vault kv/a");
    expect(originOf({ file: "/run/secrets/x" })).toBe("file /run/secrets/x");
  });
});
