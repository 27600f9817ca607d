import { type CSSVariablesResolver, createTheme, darken, type MantineColorsTuple } from "@mantine/core";

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
  primaryShade: 7, // in both themes, because the text on a colour is chosen once for both
  autoContrast: true,
  luminanceThreshold: 0.18, // black is easier to read than white on colours lighter than this
  colors: { penstock },
  defaultRadius: "md",
  fontFamily: "Inter, system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif",
  fontFamilyMonospace: "'JetBrains Mono', ui-monospace, SFMono-Regular, Menlo, Consolas, monospace",
  headings: { fontWeight: "650" },
  cursorType: "pointer",
  respectReducedMotion: true,
});

/** How much darker than its darkest shade a colour has to be to be read on a light background. */
const DARKER = { teal: 0.12, green: 0.18, yellow: 0.38, orange: 0.22, red: 0.08, cyan: 0.08, blue: 0.08 };

/** Colours of text that everybody can read (a contrast of 4.5 and more), where those of Mantine are too faint. */
export const readable: CSSVariablesResolver = ({ colors }) => ({
  variables: {},
  light: {
    "--mantine-color-dimmed": darken(colors.gray[6], 0.3),
    "--mantine-color-placeholder": darken(colors.gray[6], 0.3),
    "--mantine-color-error": colors.red[9],
    ...Object.fromEntries(
      Object.entries(DARKER).flatMap(([name, part]) =>
        ["light-color", "text", "outline"].map((use) => [
          `--mantine-color-${name}-${use}`,
          darken(colors[name]![9], part),
        ]),
      ),
    ),
  },
  dark: {
    "--mantine-color-dimmed": colors.dark[1],
    "--mantine-color-placeholder": colors.dark[1],
    "--mantine-color-error": colors.red[5],
  },
});
