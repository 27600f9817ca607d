import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";
import { KINDS } from "#/api/kinds";
import type { Attention, FlowPulse, Pulse } from "#/api/overview";
import { filterKinds } from "#/documents/columns";
import { modelOf } from "#/documents/filters";
import { render } from "#/test/render";
import { AttentionList } from "./AttentionList";
import { repairAt, tally } from "./attention";
import { StatusTable } from "./StatusTable";
import { Totals } from "./Totals";

const of = (
  code: string,
  severity: Attention["severity"] = "error",
  key: string | null = "Pipeline/orders",
) =>
  ({
    ...{ code, severity, key, kind: "Pipeline", id: "orders", name: "orders", since: null },
    message: `It says ${code}`,
    advice: "Run `penstock start orders`.",
  }) satisfies Attention;

const pulseWith = (attention: Attention[]) =>
  ({ overview: { attention }, flows: new Map(), streams: new Map() }) as unknown as Pulse;

const flow = (kind: string, id: string, status: string, phase = "running") =>
  [`${kind}/${id}`, { kind, id, status, phase } as FlowPulse] as const;

describe("what needs attention", () => {
  it("leads to where it can be repaired", () => {
    expect(repairAt(of("failed"))).toBe("/pipelines/orders");
    expect(repairAt(of("dead_letters"))).toBe("/pipelines/orders?tab=letters");
    expect(repairAt(of("backpressure", "warning", "Stream/clicks"))).toBe("/streams/clicks");
    expect(repairAt(of("no_worker", "error", null))).toBe("/workers");
    expect(repairAt(of("something_new", "info", null))).toBeNull();
  });

  it("is counted in words", () => {
    expect(tally([of("failed"), of("invalid", "info"), of("a"), of("b", "warning")])).toBe(
      "2 errors, 1 warning, 1 note",
    );
  });

  it("says what, what to do, and where; the most urgent first", async () => {
    const attention = ["a", "b", "c", "d", "e", "f"].map((code) => of(code));
    render(<AttentionList pulse={pulseWith(attention)} />);
    const items = screen.getAllByRole("listitem");
    expect(items).toHaveLength(5);
    expect(items[0]).toHaveTextContent("Error: It says aRun penstock start orders.");
    expect(within(items[0]!).getByRole("link", { name: "Open orders" })).toHaveAttribute(
      "href",
      "/pipelines/orders",
    );
    await userEvent.click(screen.getByRole("button", { name: "Show all 6" }));
    expect(screen.getAllByRole("listitem")).toHaveLength(6);
  });

  it("is calm when there is nothing", () => {
    render(<AttentionList pulse={pulseWith([])} />);
    expect(screen.getByRole("heading", { name: "Everything is running normally" })).toBeInTheDocument();
  });
});

describe("totals", () => {
  const worker = (state: string) => ({ alive: true, state });
  const totals = { in_rate: 0, out_rate: 0, lag_events: 0, dead_letters: 1, stream_bytes: 0 };
  const pulse = {
    ...pulseWith([]),
    overview: { totals, workers: [worker("ready"), worker("questions")] },
  } as unknown as Pulse;

  it("lead to the flows with dead letters, and count the workers that take flows", () => {
    render(<Totals pulse={pulse} />);
    const letters = screen.getByRole("link", { name: /Dead letters/ }).getAttribute("href")!;
    const { searchParams } = new URL(letters, "http://here");
    expect(modelOf(searchParams, filterKinds(KINDS.Pipeline))).toHaveProperty("letters");
    expect(screen.getByRole("link", { name: /Workers/ })).toHaveTextContent("1 ready0 flows");
  });
});

describe("flows by status", () => {
  it("leads from each number to its flows", () => {
    const flows = new Map([
      flow("Pipeline", "a", "failed"),
      flow("Pipeline", "b", "active"),
      flow("Pipeline", "c", "active"),
      flow("Task", "d", "paused"),
      flow("Pipeline", "e", "active", "stalled"),
    ]);
    render(<StatusTable flows={flows} />);
    const to = (name: string) => screen.getByRole("link", { name }).getAttribute("href");
    expect(to("1 failed pipelines")).toBe("/pipelines?status=failed");
    expect(to("2 active pipelines")).toBe("/pipelines?status=active");
    expect(to("1 stalled pipelines")).toBe("/pipelines?status=stalled");
    expect(to("1 paused tasks")).toBe("/tasks?status=paused");
    expect(screen.queryByRole("link", { name: "Sinks" })).toBeNull();
  });
});
