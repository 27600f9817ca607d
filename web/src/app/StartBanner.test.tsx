import { act, screen } from "@testing-library/react";
import { afterEach, describe, expect, it, vi } from "vitest";
import { type Overview, takeOverview, type WorkerStart } from "#/api/overview";
import { render } from "#/test/render";
import { StartBanner } from "./StartBanner";

const NOW = new Date("2026-01-01T00:00:06Z");

const start = (changes: Partial<WorkerStart> = {}): WorkerStart => ({
  ...{ worker: 1, phase: "starting_spark", since: "2026-01-01T00:00:00Z" },
  ...{ failures: 0, error: null, log: "/data/logs/worker-1.log" },
  ...changes,
});

const overview = (startup: WorkerStart[], workers: object[] = []) =>
  ({ startup, workers, flows: [], streams: [], gone: [] }) as unknown as Overview;

const show = (...given: Parameters<typeof overview>) => act(() => takeOverview(overview(...given), true));

afterEach(() => {
  vi.useRealTimers();
});

describe("the start of a worker", () => {
  it("is shown as steps until a worker is ready", () => {
    vi.useFakeTimers({ now: NOW });
    render(<StartBanner />);
    show([start()]);
    expect(screen.getByRole("status")).toHaveTextContent("Penstock is starting");
    expect(screen.getByLabelText("Server ready: done")).toBeInTheDocument();
    expect(screen.getByLabelText("Starting Spark…: in progress")).toBeInTheDocument();
    expect(screen.getByLabelText("Worker ready: not yet")).toBeInTheDocument();
    expect(screen.getByText("6 s")).toBeInTheDocument();
    act(() => vi.advanceTimersByTime(2000));
    expect(screen.getByText("8 s")).toBeInTheDocument();

    show([start({ phase: "connecting" })]);
    expect(screen.getByLabelText("Spark started: done")).toBeInTheDocument();
    expect(screen.getByLabelText("Connecting the worker…: in progress")).toBeInTheDocument();

    show([start({ phase: "ready" })], [{ alive: true, state: "ready" }]);
    expect(screen.queryByRole("status")).toBeNull();
  });

  it("is over when any worker is ready, though another one still starts", () => {
    render(<StartBanner />);
    show([start({ phase: "ready" }), start({ worker: 2 })], [{ alive: true, state: "ready" }]);
    expect(screen.queryByRole("status")).toBeNull();
  });

  it("says nothing where the server has started no worker", () => {
    render(<StartBanner />);
    show([]);
    expect(screen.queryByRole("status")).toBeNull();
  });

  it("says why it failed, and where more can be read", () => {
    render(<StartBanner />);
    const error = "error[spark_failed] Spark did not start: Could not parse Master URL: 'nowhere'";
    show([start({ failures: 2, error })]);
    expect(screen.getByRole("alert")).toHaveTextContent("The worker failed to start");
    expect(screen.getByRole("alert")).toHaveTextContent("2 attempts have failed");
    expect(screen.getByText(error)).toBeInTheDocument();
    expect(screen.getByText("/data/logs/worker-1.log")).toBeInTheDocument();
  });
});
