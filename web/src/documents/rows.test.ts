import { describe, expect, it } from "vitest";
import type { AnyDocument } from "#/api/kinds";
import { takeOverview } from "#/api/overview";
import { rowsOf, stateOf, statusWords } from "./rows";

const schemas = {
  StreamSpec: {
    properties: {
      schema: { default: null },
      wal: { $ref: "#/components/schemas/Wal" },
    },
  },
  Wal: { properties: { enabled: { default: true }, compression: { default: "zstd" } } },
};

const stream = (spec: unknown) => ({ kind: "Stream", id: "s", name: "s", metadata: {}, spec }) as AnyDocument;

describe("rows", () => {
  it("show what takes effect: what was saved over the defaults of the schema", () => {
    const [row] = rowsOf([stream({ wal: { compression: "lz4" } })], schemas, new WeakMap());
    expect(row?.spec).toEqual({ schema: null, wal: { enabled: true, compression: "lz4" } });
    const [bare] = rowsOf([stream(undefined)], schemas, new WeakMap());
    expect(bare?.spec.wal.compression).toBe("zstd");
  });

  it("stay the same while their document does", () => {
    const known = new WeakMap();
    const document = stream({});
    expect(rowsOf([document], schemas, known)[0]).toBe(rowsOf([document], schemas, known)[0]);
  });

  it("say in a few words what a pipeline does", () => {
    const spec = {
      source: { type: "http" },
      sinks: [{ type: "stream", stream: "out" }, { ref: "lake" }],
    };
    const [row] = rowsOf([{ ...stream(spec), kind: "Pipeline" }], {}, new WeakMap());
    expect(row?.work).toBe("http → out, lake");
  });

  it("take the phase from the pulse unless the document knows better", () => {
    const flow = { key: "Task/t", status: "active", phase: "backing_off" };
    takeOverview({ flows: [flow], streams: [], gone: [] } as never, true);
    const task = { ...stream({}), kind: "Task", id: "t", status: "active", phase: "running" } as AnyDocument;
    const [row] = rowsOf([task], {}, new WeakMap());
    expect(stateOf(row!)).toEqual({ status: "active", phase: "backing_off" });
    expect(statusWords(row!)).toBe("active backing_off");
    takeOverview({ flows: [{ ...flow, phase: "stalled" }], streams: [], gone: [] } as never, true);
    expect(statusWords(row!)).toBe("stalled");
    const [paused] = rowsOf([{ ...task, status: "paused", phase: "idle" }], {}, new WeakMap());
    expect(stateOf(paused!)).toEqual({ status: "paused", phase: "idle" });
  });
});
