import {
  CellStyleModule,
  ClientSideRowModelApiModule,
  ClientSideRowModelModule,
  ColumnApiModule,
  CustomFilterModule,
  EventApiModule,
  GridStateModule,
  ModuleRegistry,
  NumberFilterModule,
  PaginationModule,
  QuickFilterModule,
  RenderApiModule,
  RowApiModule,
  RowSelectionModule,
  TextFilterModule,
  themeQuartz,
} from "ag-grid-community";

// Only what the grids use: the whole of AG Grid would be twice as large.
ModuleRegistry.registerModules([
  CellStyleModule,
  ClientSideRowModelApiModule,
  ClientSideRowModelModule,
  ColumnApiModule,
  CustomFilterModule,
  EventApiModule,
  GridStateModule,
  NumberFilterModule,
  PaginationModule,
  QuickFilterModule,
  RenderApiModule,
  RowApiModule,
  RowSelectionModule,
  TextFilterModule,
]);

/** The look of the grids: the variables of Mantine, so that it follows light and dark by itself. */
export const gridTheme = themeQuartz.withParams({
  accentColor: "var(--mantine-primary-color-filled)",
  backgroundColor: "var(--mantine-color-body)",
  foregroundColor: "var(--mantine-color-text)",
  borderColor: "var(--mantine-color-default-border)",
  headerBackgroundColor: "var(--mantine-color-default-hover)",
  headerTextColor: "var(--mantine-color-text)",
  rowHoverColor: "var(--mantine-color-default-hover)",
  browserColorScheme: "inherit",
  fontFamily: "inherit",
  fontSize: 14,
  headerFontWeight: 600,
  wrapperBorderRadius: 8,
  spacing: 6,
  cellHorizontalPadding: 10,
});
