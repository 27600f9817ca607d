import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, describe, expect, it } from "vitest";
import { render } from "#/test/render";
import { of, refused, serve } from "#/test/server";
import ConsolePage from "./ConsolePage";

const RESULT = {
  columns: [
    { name: "customer", type: "string" },
    { name: "total", type: "bigint" },
  ],
  rows: [
    ["ada", 9],
    ["bob", null],
  ],
  truncated: true,
  ms: 1500,
};

beforeEach(() => {
  localStorage.clear();
  sessionStorage.clear();
});

const open = (replies: Record<string, unknown>) => {
  const asked = serve({
    "GET /streams": { items: [], total: 0 },
    "GET /functions": [],
    "GET /queries": { items: [] },
    ...replies,
  });
  render(<ConsolePage />, { at: "/sql?query=SELECT%20*%20FROM%20orders" });
  return asked;
};

describe("the SQL console", () => {
  it("runs a query that came with the address, with its limits", async () => {
    const asked = open({ "POST /query": RESULT });
    await userEvent.click(await screen.findByRole("button", { name: "Run" }));
    expect(await screen.findByText("2 rows in 1.5 s")).toBeInTheDocument();
    expect(screen.getByText(/The first 2 rows. The query finds more/)).toBeInTheDocument();
    const [query] = of(asked, "POST /query");
    expect(query?.content).toMatchObject({ sql: "SELECT * FROM orders", limit: 1000, timeout_ms: 30_000 });
    await userEvent.click(screen.getByRole("button", { name: "History" }));
    expect(await screen.findByRole("menuitem", { name: /2 rows in 1.5 s$/ })).toBeInTheDocument();
  });

  it("cancels a query by its id", async () => {
    let answer: (response: Response) => void = () => undefined;
    const asked = open({
      "POST /query": () =>
        new Promise((resolve) => {
          answer = resolve;
        }),
    });
    await userEvent.click(await screen.findByRole("button", { name: "Run" }));
    await userEvent.click(await screen.findByRole("button", { name: "Cancel" }));
    const { id } = of(asked, "POST /query")[0]!.content as { id: string };
    await waitFor(() => expect(asked.map(({ what }) => what)).toContain(`DELETE /query/${id}`));
    answer(refused(409, "query_cancelled", "the query was cancelled"));
    expect(await screen.findByText("Cancelled")).toBeInTheDocument();
    expect(screen.queryByRole("alert")).toBeNull();
  });

  it("shows why a query failed", async () => {
    open({ "POST /query": refused(422, "unknown_column", "there is no column 'x' (line 1, column 8)") });
    await userEvent.click(await screen.findByRole("button", { name: "Run" }));
    expect(await screen.findByRole("alert")).toHaveTextContent("there is no column 'x'");
  });
});
