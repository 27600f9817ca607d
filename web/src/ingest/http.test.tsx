import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";
import type { AnyDocument } from "#/api/kinds";
import { takeSession } from "#/api/session";
import { session } from "#/test/people";
import { render } from "#/test/render";
import { of, refused, serve } from "#/test/server";
import { addressOf, curlOf, entranceOf, sampleBody } from "./address";
import { HttpAddress } from "./HttpAddress";
import SendPanel from "./SendPanel";
import { SendTab } from "./SendTab";

const COLUMNS = [
  { name: "id", type: "bigint" },
  { name: "customer", type: "string" },
];
const RAW = ["value", "key", "headers"].map((name) => ({ name, type: "string" }));
const accepted = { accepted: 3, first: 0, next: 3, stream: "orders.in", guarantee: "survives a kill" };

it("has the address of the path, or else of the pipeline", () => {
  expect(addressOf("/orders/", "shop")).toBe("/ingest/orders");
  expect(addressOf("a b/c", null)).toBe("/ingest/a%20b/c");
  expect(addressOf(undefined, "shop")).toBe("/ingest/shop");
  expect(addressOf(undefined, null)).toBeNull();
});

it("makes samples of the columns", () => {
  expect(sampleBody(COLUMNS)).toBe('{"id":1,"customer":"customer 1"}');
  expect(sampleBody(RAW)).toBe('{"id":1}');
  expect(JSON.parse(sampleBody(COLUMNS, 2))).toHaveLength(2);
});

it("quotes what the shell would read", () => {
  expect(curlOf("http://x/ingest/a", `{"name":"O'Neil"}`, false)).toBe(
    `curl http://x/ingest/a -H 'Content-Type: application/json' -d '{"name":"O'\\''Neil"}'`,
  );
});

it("shows a line to copy, with a token where people log in", () => {
  takeSession(session("editor"));
  render(<HttpAddress address="/ingest/orders" columns={COLUMNS} isSaved />);
  expect(screen.getByLabelText("curl command")).toHaveTextContent("Authorization: Bearer $TOKEN");
  expect(screen.getByRole("button", { name: "Copy the curl command" })).toBeInTheDocument();
});

it("makes samples of the columns of the stream, if the source has none", async () => {
  const orders = { kind: "Stream", id: "orders", spec: { schema: "page STRING NOT NULL, ms BIGINT" } };
  serve({ "GET /streams": { items: [orders], total: 1 } });
  render(<SendPanel address="/ingest/clicks" columns={RAW} stream="orders" />);
  await waitFor(() =>
    expect(screen.getByLabelText("curl command")).toHaveTextContent(`-d '{"page":"page 1","ms":1}'`),
  );
});

it("sends samples, several times", async () => {
  const user = userEvent.setup();
  const asked = serve({ "POST /ingest/orders": accepted });
  render(<SendTab address="/ingest/orders" columns={COLUMNS} isSaved />);
  await user.click(screen.getByRole("button", { name: "Insert samples" }));
  await user.clear(screen.getByLabelText("Times"));
  await user.type(screen.getByLabelText("Times"), "2");
  await user.clear(screen.getByLabelText("Pause between, ms"));
  await user.type(screen.getByLabelText("Pause between, ms"), "1");
  await user.click(screen.getByRole("button", { name: "Send" }));
  expect(await screen.findByText("Acknowledged 6 events")).toBeInTheDocument();
  const sent = of(asked, "POST /ingest/orders");
  expect(sent).toHaveLength(2);
  expect(sent[0]!.content).toHaveLength(3);
  expect(sent[0]!.headers.get("Content-Type")).toBe("application/json");
});

it("shows why a request was rejected", async () => {
  const user = userEvent.setup();
  serve({ "POST /ingest/orders": refused(400, "undecodable", "line 1: column 'id' is missing") });
  render(<SendTab address="/ingest/orders" columns={COLUMNS} isSaved />);
  await user.click(screen.getByRole("button", { name: "Insert samples" }));
  await user.click(screen.getByRole("button", { name: "Send" }));
  expect(await screen.findByText(/column 'id' is missing/)).toBeInTheDocument();
});

it("waits until the pipeline is saved", () => {
  render(<SendTab address="/ingest/orders" columns={COLUMNS} isSaved={false} />);
  expect(screen.getByText(/Save the pipeline first/)).toBeInTheDocument();
});

it("finds the HTTP source of a document", () => {
  const document = (kind: string, spec: object) => ({ kind, id: "shop", spec }) as unknown as AnyDocument;
  const typed = { type: "http", path: "/orders", schema: "id BIGINT, customer STRING" };
  expect(entranceOf(document("Source", typed))).toMatchObject({
    address: "/ingest/orders",
    columns: [{ name: "id" }, { name: "customer" }],
  });
  expect(entranceOf(document("Pipeline", { source: { type: "http" } }))).toMatchObject({
    address: "/ingest/shop",
    columns: RAW,
  });
  expect(entranceOf(document("Source", { type: "http", stream: "orders" }))).toMatchObject({
    stream: "orders",
  });
  expect(entranceOf(document("Pipeline", { source: { ref: "shop" } }))).toBeNull();
  expect(entranceOf(document("Task", { input: "a" }))).toBeNull();
});
