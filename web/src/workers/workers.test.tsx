import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { Overview } from "#/api/overview";
import { render } from "#/test/render";
import { WorkerTable } from "./WorkerTable";

type Worker = Overview["workers"][number];

const worker = (changes: Partial<Worker>): Worker => ({
  id: "1a2b3c4d-0000-0000-0000-000000000000",
  host: "rack-7",
  pid: 7,
  state: "ready",
  alive: true,
  flows: 0,
  labels: {},
  capacity: null,
  started_at: "2026-01-01T00:00:00Z",
  info: {},
  cpu_percent: null,
  memory_bytes: null,
  flow_keys: [],
  ...changes,
});

const show = (...workers: Worker[]) => render(<WorkerTable workers={workers} flows={new Map()} />);

describe("the table of workers", () => {
  afterEach(() => vi.unstubAllGlobals());

  it("shows labels, capacity and what a state means", () => {
    show(worker({ labels: { zone: "b", disk: "ssd" }, capacity: 4, state: "standby" }));
    expect(screen.getByText("disk=ssd")).toBeInTheDocument();
    expect(screen.getByText("zone=b")).toBeInTheDocument();
    expect(screen.getByText("at most 4")).toBeInTheDocument();
    expect(screen.getByTitle(/takes over the flows of a worker that is lost/)).toHaveTextContent("standby");
  });

  it("offers to drain only a worker that takes flows", () => {
    show(
      worker({ id: "draining", state: "draining" }),
      worker({ id: "drained", state: "drained" }),
      worker({ id: "gone", alive: false }),
    );
    expect(screen.queryByRole("button", { name: "Drain" })).toBeNull();
  });

  it("drains a worker after a question", async () => {
    const asked: string[] = [];
    vi.stubGlobal(
      "fetch",
      vi.fn(async (request: Request) => {
        asked.push(`${request.method} ${new URL(request.url).pathname}`);
        return Response.json(worker({ state: "draining" }));
      }),
    );
    show(worker({ flow_keys: ["Pipeline/a"] }));
    await userEvent.click(screen.getByRole("button", { name: "Drain" }));
    const dialog = await screen.findByRole("dialog");
    expect(dialog).toHaveTextContent("Its flow finishes the current batch and moves to other workers.");
    expect(asked).toEqual([]);
    await userEvent.click(within(dialog).getByRole("button", { name: "Drain" }));
    await waitFor(() => expect(asked).toEqual(["POST /workers/1a2b3c4d-0000-0000-0000-000000000000/drain"]));
  });
});
