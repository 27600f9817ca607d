import {
  Group,
  type MantineColorScheme,
  Paper,
  SegmentedControl,
  Text,
  Title,
  useMantineColorScheme,
} from "@mantine/core";

const SCHEMES = [
  { value: "auto", label: "System" },
  { value: "light", label: "Light" },
  { value: "dark", label: "Dark" },
];

/** How the app looks in this browser. */
export function Appearance() {
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  return (
    <Paper withBorder p="md" component="section" aria-labelledby="appearance">
      <Group justify="space-between">
        <div>
          <Title order={2} size="h4" id="appearance">
            Theme
          </Title>
          <Text size="sm" c="dimmed">
            Saved in this browser.
          </Text>
        </div>
        <SegmentedControl
          aria-labelledby="appearance"
          value={colorScheme}
          onChange={(scheme) => setColorScheme(scheme as MantineColorScheme)}
          data={SCHEMES}
        />
      </Group>
    </Paper>
  );
}
