import "#/documents/gridSetup";
import { Badge } from "@mantine/core";
import type { ColDef, ICellRendererParams } from "ag-grid-community";
import { AgGridReact } from "ag-grid-react";
import type { Schemas } from "#/api/client";
import { count, duration, moment } from "#/components/format";
import { gridTheme } from "#/documents/gridSetup";

export type Batch = Schemas["BatchLine"];

const COLUMNS: ColDef<Batch>[] = [
  {
    field: "at",
    headerName: "Time",
    width: 190,
    valueFormatter: ({ value }) => moment(value),
    sort: "desc",
    comparator: (a: string, b: string) => Date.parse(a) - Date.parse(b),
  },
  { field: "batch", headerName: "Batch", width: 100, filter: "agNumberColumnFilter" },
  number("events", "Events", count),
  number("duration_ms", "Duration", duration),
  number("latency_ms", "Latency", duration),
  { field: "outcome", headerName: "Outcome", width: 130, cellRenderer: Outcome },
  { field: "error", headerName: "Error", flex: 1, minWidth: 160, filter: "agTextColumnFilter" },
];

/** Batches as rows that can be sorted and filtered. */
export function BatchGrid({ batches }: { batches: Batch[] }) {
  return (
    <div style={{ height: 460 }}>
      <AgGridReact<Batch> theme={gridTheme} rowData={batches} columnDefs={COLUMNS} getRowId={rowId} />
    </div>
  );
}

const rowId = ({ data }: { data: Batch }) => `${data.batch} ${data.at}`;

function number(
  field: "events" | "duration_ms" | "latency_ms",
  headerName: string,
  format: (value: number | null) => string,
): ColDef<Batch> {
  return {
    field,
    headerName,
    width: 120,
    type: "rightAligned",
    filter: "agNumberColumnFilter",
    valueFormatter: ({ value }) => (value == null ? "–" : format(value)),
  };
}

function Outcome({ value }: ICellRendererParams<Batch, Batch["outcome"]>) {
  return (
    <Badge variant="light" color={value === "failed" ? "red" : "teal"} tt="none">
      {value}
    </Badge>
  );
}
