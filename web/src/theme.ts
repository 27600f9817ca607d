import { createTheme, type MantineColorsTuple } from "@mantine/core";

const penstock: MantineColorsTuple = [
  "#e3fafc",
  "#c5f0f5",
  "#99e2ea",
  "#66d0dc",
  "#3bbccb",
  "#15a2b4",
  "#0c8599",
  "#0b7285",
  "#095c6b",
  "#064652",
];

export const theme = createTheme({
  primaryColor: "penstock",
  primaryShade: { light: 7, dark: 5 },
  autoContrast: true,
  luminanceThreshold: 0.35,
  colors: { penstock },
  defaultRadius: "md",
  fontFamily: "Inter, system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif",
  fontFamilyMonospace: "'JetBrains Mono', ui-monospace, SFMono-Regular, Menlo, Consolas, monospace",
  headings: { fontWeight: "650" },
  cursorType: "pointer",
});
