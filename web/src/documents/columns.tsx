import type { ColDef } from "ag-grid-community";
import type { Kind, Place } from "#/api/kinds";
import { bytes, count, duration, moment, rate } from "#/components/format";
import {
  ActionsCell,
  ActionsMenuCell,
  ChoiceFilter,
  type Choices,
  NameCell,
  NumberFilter,
  StatusCell,
  StreamCell,
  StripHeader,
} from "./cells";
import type { FilterKinds } from "./filters";
import classes from "./grid.module.css";
import { flowOf, type Row, stateOf, statusWords, streamOf } from "./rows";

type Column = ColDef<Row> & { colId: string };

/** How the columns are shown: the times as strips or in full, the actions in little room or in full. */
export interface Look {
  times: boolean;
  small: boolean;
  /** The columns that are left out. */
  hidden?: readonly string[];
}

/** Columns that are left out until somebody wants them: names need the room. */
export const HIDDEN: readonly string[] = ["labels", "revision", "max_segments"];

/** The columns of a kind that can be shown or left out, with their names. */
export const choosable = (kind: Kind): { id: string; label: string }[] =>
  columnsOf(kind, { times: true, small: false })
    .filter(({ colId }) => !["name", "actions", "created", "updated"].includes(colId))
    .map(({ colId, headerName }) => ({ id: colId, label: headerName ?? colId }));

/** The columns of the grid of a kind. */
export function columnsOf(kind: Kind, { times, small, hidden = [] }: Look): Column[] {
  const columns: Column[] = [
    text("name", "Name", ({ document }) => document.name, {
      cellRenderer: NameCell,
      flex: 3,
      minWidth: small ? 146 : 232,
      filterValueGetter: ({ data }) => (data ? `${data.document.name} ${data.document.id}` : ""),
      getQuickFilterText: ({ data }) => `${data.document.name} ${data.document.id}`,
    }),
    ...OF_KIND[kind.place].map((column) =>
      small && column.colId === "status" ? { ...column, width: 116 } : column,
    ),
    text("labels", "Labels", ({ labels }) => labels, { width: 130 }),
    number("revision", "Revision", ({ document }) => document.revision, String, { width: 92 }),
    time("created", "Created", ({ document }) => document.created_at, { times, small }),
    time("updated", "Updated", ({ document }) => document.updated_at, { times, small }),
    {
      colId: "actions",
      headerName: small ? "" : "Actions",
      cellRenderer: small ? ActionsMenuCell : ActionsCell,
      pinned: "right",
      width: small ? 52 : kind.runs ? 166 : 138,
      // A row whose status changes offers something else.
      valueGetter: ({ data }) => (data ? (stateOf(data).status ?? "") : ""),
      resizable: false,
      sortable: false,
      suppressMovable: true,
      // Tab walks through the buttons of the cell before it goes on to the next one.
      suppressKeyboardEvent: ({ event }) => event.key === "Tab" && hasNextButton(event),
      getQuickFilterText: () => "",
    },
  ];
  return columns.filter(({ colId }) => !hidden.includes(colId));
}

/** How each column that has a filter is filtered. */
export function filterKinds(kind: Kind): FilterKinds {
  const found: Record<string, "text" | "number"> = {};
  for (const { colId, filter } of columnsOf(kind, { times: true, small: false })) {
    if (filter === "agTextColumnFilter") found[colId] = "text";
    if (filter === "agNumberColumnFilter") found[colId] = "number";
  }
  return found;
}

/** The columns whose values come with the pulse. */
export const LIVE = ["status", "actions", "in_rate", "out_rate", "lag", "letters", "size", "events"];

const ON_OFF = [
  ["on", "on"],
  ["off", "off"],
] as const;

const STATUSES = ["active", "paused", "completed", "failed", "stopped"].map((each) => [each, each] as const);
const PHASES = [
  ["stalled", "stalled"],
  ["backing_off", "backing off"],
  ["waiting", "waiting"],
] as const;
const DEFINITION = ["definition", "definition"] as const;

const status = (alone: boolean): Column =>
  choice("status", "Status", statusWords, [...STATUSES, ...PHASES, ...(alone ? [DEFINITION] : [])], {
    cellRenderer: StatusCell,
    width: 124,
  });

const inRate = number("in_rate", "In", (row) => flowOf(row)?.in_rate, rate);
const outRate = number("out_rate", "Out", (row) => flowOf(row)?.out_rate, rate);
const lag = number("lag", "Lag", (row) => flowOf(row)?.lag_events, count);
const letters = number("letters", "Dead letters", (row) => flowOf(row)?.dead_letters, count, { width: 98 });
const type = text("type", "Type", ({ work }) => work, {
  minWidth: 140,
  flex: 1.5,
  cellClass: classes.lines,
});
const stream = text("stream", "Stream", ({ spec }) => spec.stream, { cellRenderer: StreamCell, width: 150 });

const OF_KIND: Record<Place, Column[]> = {
  streams: [
    choice("wal", "WAL", ({ spec }) => (spec.wal?.enabled === false ? "off" : "on"), ON_OFF, { width: 72 }),
    text("retention", "Retention", ({ spec }) => retention(spec.wal), {
      width: 100,
      comparator: (_a, _b, a, b) => retentionMs(a.data?.spec.wal) - retentionMs(b.data?.spec.wal),
    }),
    choice(
      "compression",
      "Compression",
      ({ spec }) => spec.wal?.compression,
      [
        ["zstd", "zstd"],
        ["lz4", "lz4"],
        ["none", "none"],
      ],
      { width: 122 },
    ),
    number("max_segments", "Max segments", ({ spec }) => spec.wal?.max_segments, String, { width: 108 }),
    choice("sync", "Sync", ({ spec }) => (spec.wal?.sync ? "on" : "off"), ON_OFF, { width: 74 }),
    number("in_rate", "In", (row) => streamOf(row)?.in_rate, rate, { width: 78 }),
    number("events", "Events", (row) => streamOf(row)?.events, count),
    number("size", "Size", (row) => streamOf(row)?.bytes, bytes, { width: 92 }),
    number("lag", "Lag", (row) => streamOf(row)?.lag_events, count, { width: 78 }),
  ],
  pipelines: [status(false), type, inRate, outRate, lag, letters],
  tasks: [
    status(false),
    text("input", "Input", ({ spec }) => spec.input, { cellRenderer: StreamCell, width: 140 }),
    type,
    inRate,
    outRate,
    lag,
    letters,
  ],
  sources: [status(true), type, stream, inRate, outRate, lag],
  sinks: [status(true), type, stream, inRate, lag, letters],
};

function text(
  colId: string,
  headerName: string,
  value: (row: Row) => string | undefined,
  more: Partial<Column> = {},
): Column {
  return {
    colId,
    headerName,
    valueGetter: ({ data }) => (data ? (value(data) ?? "") : ""),
    filter: "agTextColumnFilter",
    filterParams: { filterOptions: ["contains"], maxNumConditions: 1, debounceMs: 150 },
    suppressFloatingFilterButton: true,
    ...more,
  };
}

function choice(
  colId: string,
  headerName: string,
  value: (row: Row) => string | undefined,
  choices: Choices["choices"],
  more: Partial<Column> = {},
): Column {
  return text(colId, headerName, value, {
    width: 118,
    floatingFilterComponent: ChoiceFilter,
    floatingFilterComponentParams: { choices },
    ...more,
  });
}

function number(
  colId: string,
  headerName: string,
  value: (row: Row) => number | null | undefined,
  format: (value: number) => string,
  more: Partial<Column> = {},
): Column {
  return {
    colId,
    headerName,
    width: 82,
    cellClass: ["ag-right-aligned-cell", classes.number!],
    headerClass: "ag-right-aligned-header",
    valueGetter: ({ data }) => (data ? (value(data) ?? null) : null),
    valueFormatter: ({ value }) => (value === null ? "–" : format(value)),
    filter: "agNumberColumnFilter",
    filterParams: {
      filterOptions: ["greaterThanOrEqual", "greaterThan", "lessThan", "lessThanOrEqual", "equals"],
      maxNumConditions: 1,
    },
    floatingFilterComponent: NumberFilter,
    suppressFloatingFilterButton: true,
    getQuickFilterText: () => "",
    ...more,
  };
}

function time(colId: string, headerName: string, value: (row: Row) => string, look: Look): Column {
  const strip: Partial<Column> = {
    width: 28,
    minWidth: 28,
    maxWidth: 28,
    resizable: false,
    headerComponent: StripHeader,
    valueFormatter: () => "",
    floatingFilter: false,
    filter: false,
    cellClass: classes.stripCell,
  };
  return text(colId, headerName, value, {
    width: 164,
    valueFormatter: ({ value }) => moment(value),
    filterValueGetter: ({ data }) => (data ? moment(value(data)) : ""),
    pinned: look.small ? null : "right",
    getQuickFilterText: () => "",
    ...(look.times ? {} : strip),
  });
}

// biome-ignore lint/suspicious/noExplicitAny: the `wal` of a spec as it was saved
const retentionMs = (wal: any): number =>
  wal?.enabled === false ? 0 : (wal?.retention_ms ?? Number.MAX_VALUE);

// biome-ignore lint/suspicious/noExplicitAny: the `wal` of a spec as it was saved
function retention(wal: any): string {
  if (wal?.enabled === false) return "–";
  return wal?.retention_ms == null ? "unlimited" : duration(wal.retention_ms);
}

function hasNextButton({ target, shiftKey }: KeyboardEvent): boolean {
  const cell = (target as HTMLElement).closest(".ag-cell");
  const buttons = [...(cell?.querySelectorAll("button") ?? [])];
  const place = buttons.indexOf(target as HTMLButtonElement);
  if (place < 0) return false;
  return shiftKey ? place > 0 : place < buttons.length - 1;
}
