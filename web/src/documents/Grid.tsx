import "./gridSetup";
import { Progress } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import { IconChevronLeft, IconChevronRight } from "@tabler/icons-react";
import type {
  CellKeyDownEvent,
  FilterChangedEvent,
  FullWidthCellKeyDownEvent,
  GetRowIdParams,
  GridApi,
  RowClickedEvent,
  RowHeightParams,
  SelectionChangedEvent,
} from "ag-grid-community";
import { AgGridReact } from "ag-grid-react";
import { useEffect, useMemo, useRef, useState } from "react";
import type { AnyDocument, Kind } from "#/api/kinds";
import { subscribe } from "#/api/overview";
import { toggleOf } from "./bulk";
import type { GridContext, RowAction } from "./cells";
import { columnsOf, LIVE } from "./columns";
import type { FilterModel } from "./filters";
import classes from "./grid.module.css";
import { gridTheme } from "./gridSetup";
import type { Row } from "./rows";

interface Props {
  kind: Kind;
  rows: Row[];
  /** Whether more rows are on their way. */
  isLoading: boolean;
  search: string;
  filters: FilterModel;
  /** Whether they come from `onFilters`. */
  areOwn: boolean;
  onFilters: (model: FilterModel) => void;
  onSelected: (documents: AnyDocument[]) => void;
  onOpen: (document: AnyDocument) => void;
  onAct: (action: RowAction, document: AnyDocument) => void;
  times: boolean;
  onTimes: (shown: boolean) => void;
  /** Whether rows can be edited, cloned and deleted, not only viewed. */
  mayEdit: boolean;
  /** Whether flows can be paused, resumed and started. */
  mayOperate: boolean;
  /** The columns that are left out. */
  hidden: readonly string[];
}

const KEYS: Record<string, RowAction> = { v: "view", e: "edit", c: "clone", Delete: "delete" };
const VIEW: readonly RowAction[] = ["view"];
const ALL: readonly RowAction[] = ["view", "edit", "clone", "delete"];

/** The documents of a kind as rows, with filters under the headers and pages below. */
export function Grid(props: Props) {
  const { kind, rows, isLoading, search, filters, times, onTimes, mayEdit, mayOperate } = props;
  const api = useRef<GridApi<Row> | null>(null);
  const small = useMediaQuery("(max-width: 48em)", false, { getInitialValueInEffect: false });
  // A filter that came with the address is never on a column that is not there.
  const hidden = props.hidden.filter((column) => !(column in filters)).join();
  const columns = useMemo(
    () => columnsOf(kind, { times, small, hidden: hidden.split(",") }),
    [kind, times, small, hidden],
  );
  const latest = useRef(props);
  latest.current = props;
  const context = useMemo<GridContext>(
    () => ({
      actions: mayEdit ? ALL : VIEW,
      mayOperate,
      act: (action, document) => latest.current.onAct(action, document),
      toggleTimes: () => latest.current.onTimes(!latest.current.times),
    }),
    [mayEdit, mayOperate],
  );
  const [initial] = useState({ filter: { filterModel: filters } });
  useEffect(() => subscribe(() => refresh(api.current)), []);
  useEffect(() => {
    const grid = api.current;
    if (grid && !latest.current.areOwn && !same(grid.getFilterModel(), filters)) grid.setFilterModel(filters);
  }, [filters]);
  return (
    <div className={classes.frame} aria-busy={isLoading}>
      <div className={classes.grid}>
        {isLoading && (
          <Progress value={100} animated size={3} aria-label="Loading more" className={classes.busy} />
        )}
        <AgGridReact<Row>
          theme={gridTheme}
          rowData={rows}
          columnDefs={columns}
          defaultColDef={DEFAULTS}
          context={context}
          getRowId={idOf}
          initialState={initial}
          quickFilterText={search}
          cacheQuickFilter
          rowSelection={SELECTION}
          selectionColumnDef={small ? UNPINNED : PINNED}
          pagination
          paginationPageSize={50}
          paginationPageSizeSelector={small ? false : PAGE_SIZES}
          getRowHeight={small ? heightOnPhone : heightOf}
          headerHeight={38}
          floatingFiltersHeight={40}
          animateRows={false}
          suppressCellFocus={false}
          rowBuffer={5}
          ensureDomOrder
          onGridReady={({ api: ready }) => {
            api.current = ready;
          }}
          onGridPreDestroyed={() => {
            api.current = null;
          }}
          onFilterChanged={({ api: grid, source }: FilterChangedEvent<Row>) => {
            if (source !== "api") latest.current.onFilters(grid.getFilterModel() as FilterModel);
          }}
          onSelectionChanged={({ api: grid }: SelectionChangedEvent<Row>) =>
            latest.current.onSelected(grid.getSelectedRows().map((row) => row.document))
          }
          onRowClicked={(event: RowClickedEvent<Row>) => {
            if (event.data && isPlain(event.event)) latest.current.onOpen(event.data.document);
          }}
          onCellKeyDown={(event) => key(event, latest.current)}
          overlayNoRowsTemplate={`<span>No ${kind.title.toLowerCase()} yet.</span>`}
        />
      </div>
      <div className={classes.side}>
        <button
          type="button"
          className={classes.sideButton}
          aria-pressed={times}
          onClick={() => onTimes(!times)}
        >
          {times ? <IconChevronRight size={14} /> : <IconChevronLeft size={14} />}
          {times ? "Hide times" : "Show times"}
        </button>
      </div>
    </div>
  );
}

// Options of the grid are the same objects at every rendering: a new one would make it work anew.
const PAGE_SIZES = [20, 50, 100, 500];
const UNPINNED = { width: 44, resizable: false } as const;
const PINNED = { ...UNPINNED, pinned: "left" } as const;
/** High enough for the whole name and id in the least width of their column. */
const heightFor =
  (nameLetters: number, idLetters: number) =>
  ({ data }: RowHeightParams<Row>) => {
    const lines = (text = "", width: number) => Math.max(1, Math.ceil(text.length / width));
    return 12 + 18 * lines(data?.document.name, nameLetters) + 16 * lines(data?.document.id, idLetters);
  };
const heightOf = heightFor(25, 32);
const heightOnPhone = heightFor(11, 18);

const idOf = ({ data }: GetRowIdParams<Row>) => data.document.id;

const DEFAULTS = {
  sortable: true,
  resizable: true,
  floatingFilter: true,
  suppressHeaderFilterButton: true,
  suppressHeaderMenuButton: true,
  wrapHeaderText: true,
} as const;

const SELECTION = {
  mode: "multiRow",
  checkboxes: true,
  headerCheckbox: true,
  selectAll: "filtered",
  enableClickSelection: false,
} as const;

/** Shows the newest numbers. Only cells in sight that changed are drawn again. */
function refresh(grid: GridApi<Row> | null): void {
  if (grid === null) return;
  grid.refreshCells({ columns: LIVE.filter((column) => grid.getColumn(column) !== null) });
  const sorted = grid.getColumnState().some(({ colId, sort }) => sort && LIVE.includes(colId));
  const filtered = Object.keys(grid.getFilterModel()).some((column) => LIVE.includes(column));
  if (filtered) grid.onFilterChanged("api");
  else if (sorted) grid.refreshClientSideRowModel("sort");
}

/** Enter opens the page of a row; letters do what its buttons do. */
function key(event: CellKeyDownEvent<Row> | FullWidthCellKeyDownEvent<Row>, props: Props): void {
  const pressed = event.event as KeyboardEvent;
  const target = pressed.target as HTMLElement;
  if (!event.data || pressed.ctrlKey || pressed.metaKey || pressed.altKey || target.closest("button, input"))
    return;
  const { document } = event.data;
  const inActions = "column" in event && event.column.getColId() === "actions";
  if (pressed.key === "Enter" && inActions) target.querySelector("button")?.focus();
  else if (pressed.key === "Enter") props.onOpen(document);
  const action = KEYS[pressed.key];
  if (action === "view" || (action && props.mayEdit)) props.onAct(action, document);
  const verb = props.mayOperate ? toggleOf(document) : null;
  if (pressed.key === "p" && verb) props.onAct(verb, document);
}

/** Whether a click means the row, not something in it or a text that was marked. */
function isPlain(event: Event | null | undefined): boolean {
  const target = event?.target as HTMLElement | undefined;
  if (target?.closest("a, button, input, .ag-selection-checkbox, [role=menu]")) return false;
  return (window.getSelection()?.toString() ?? "") === "";
}

const same = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b);
