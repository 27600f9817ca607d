import "#/documents/gridSetup";
import { Badge } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import type { ColDef, ICellRendererParams } from "ag-grid-community";
import { AgGridReact } from "ag-grid-react";
import type { Schemas } from "#/api/client";
import { count, duration, moment, shortMoment } from "#/components/format";
import { gridTheme } from "#/documents/gridSetup";

export type Batch = Schemas["BatchLine"];

const TIME: ColDef<Batch> = {
  field: "at",
  headerName: "Time",
  width: 190,
  valueFormatter: ({ value }) => moment(value),
  sort: "desc",
  comparator: (a: string, b: string) => Date.parse(a) - Date.parse(b),
};
const BATCH: ColDef<Batch> = {
  field: "batch",
  headerName: "Batch",
  width: 100,
  filter: "agNumberColumnFilter",
};
const EVENTS = number("events", "Events", count);
const DURATION = number("duration_ms", "Duration", duration);
const LATENCY = number("latency_ms", "Latency", duration);
const OUTCOME: ColDef<Batch> = { field: "outcome", headerName: "Outcome", width: 130, cellRenderer: Outcome };
const ERROR: ColDef<Batch> = {
  field: "error",
  headerName: "Error",
  flex: 1,
  minWidth: 160,
  filter: "agTextColumnFilter",
};

const COLUMNS = [TIME, BATCH, EVENTS, DURATION, LATENCY, OUTCOME, ERROR];
const TIGHT = gridTheme.withParams({ cellHorizontalPadding: 6 });
/** The same, those first that a phone has room for. */
const ON_PHONE = [
  { ...TIME, width: 78, valueFormatter: ({ value }: { value: string }) => shortMoment(value) },
  { ...EVENTS, width: 72 },
  { ...DURATION, width: 90 },
  { ...OUTCOME, width: 114 },
  LATENCY,
  BATCH,
  ERROR,
].map((column) => ({ ...column, suppressHeaderFilterButton: true }));

/** Batches as rows that can be sorted and filtered. */
export function BatchGrid({ batches }: { batches: Batch[] }) {
  const isSmall = useMediaQuery("(max-width: 48em)", false, { getInitialValueInEffect: false });
  return (
    <div style={{ height: 460 }}>
      <AgGridReact<Batch>
        theme={isSmall ? TIGHT : gridTheme}
        rowData={batches}
        columnDefs={isSmall ? ON_PHONE : COLUMNS}
        getRowId={rowId}
      />
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
