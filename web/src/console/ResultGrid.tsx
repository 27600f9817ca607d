import "#/documents/gridSetup";
import type { ColDef, ValueGetterParams } from "ag-grid-community";
import { AgGridReact } from "ag-grid-react";
import { useMemo } from "react";
import { gridTheme } from "#/documents/gridSetup";
import type { QueryResult } from "./api";
import { isNumeric } from "./charting";
import classes from "./console.module.css";

type Cells = readonly unknown[];

/** The rows of a result. Columns can be sorted and resized. */
export function ResultGrid({ result }: { result: QueryResult }) {
  const columns = useMemo(() => result.columns.map(columnOf), [result]);
  return (
    <div className={classes.grid} style={{ height: heightOf(result.rows.length) }}>
      <AgGridReact<Cells>
        theme={gridTheme}
        rowData={result.rows}
        columnDefs={columns}
        defaultColDef={DEFAULTS}
        rowHeight={32}
        headerHeight={36}
        pagination={result.rows.length > PAGE}
        paginationPageSize={PAGE}
        paginationPageSizeSelector={PAGE_SIZES}
        enableCellTextSelection
        ensureDomOrder
        suppressMovableColumns
        overlayNoRowsTemplate="<span>The query finds no rows.</span>"
      />
    </div>
  );
}

const PAGE = 100;
const PAGE_SIZES = [20, 100, 500, 1000];
const DEFAULTS = {
  sortable: true,
  resizable: true,
  minWidth: 90,
  suppressHeaderMenuButton: true,
} as const;

/** As high as its rows, up to a screen. */
const heightOf = (rows: number) => Math.min(520, Math.max(160, 40 + rows * 32 + (rows > PAGE ? 48 : 4)));

function columnOf({ name, type }: QueryResult["columns"][number], place: number): ColDef<Cells> {
  const numeric = isNumeric(type);
  return {
    colId: String(place),
    headerName: name,
    flex: 1,
    valueGetter: ({ data }: ValueGetterParams<Cells>) => data?.[place],
    valueFormatter: ({ value }) => shown(value),
    cellClass: ({ value }) => [
      ...(numeric ? ["ag-right-aligned-cell"] : []),
      ...(value === null ? [classes.null!] : []),
    ],
    headerClass: numeric ? "ag-right-aligned-header" : undefined,
    comparator: (one, other) => compare(one, other),
  };
}

/** A value as it stands in a cell. */
export function shown(value: unknown): string {
  if (value === null || value === undefined) return "NULL";
  return typeof value === "string" ? value : JSON.stringify(value);
}

function compare(one: unknown, other: unknown): number {
  if (one === other) return 0;
  if (one === null) return -1;
  if (other === null) return 1;
  const [a, b] = isOrdered(one) && isOrdered(other) ? [one, other] : [shown(one), shown(other)];
  return a < b ? -1 : a > b ? 1 : 0;
}

const isOrdered = (value: unknown): value is number | bigint =>
  typeof value === "number" || typeof value === "bigint";
