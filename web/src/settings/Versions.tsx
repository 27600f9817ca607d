import { Paper, SimpleGrid, Text, Title } from "@mantine/core";
import type { Schemas } from "#/api/client";

/** What runs here. */
export function Versions({ versions }: { versions: Schemas["Versions"] }) {
  const shown = [
    ["Penstock", versions.penstock],
    ["Spark", versions.spark],
    ["Python", versions.python],
    ["Java", versions.java ?? "not found"],
  ] as const;
  return (
    <Paper withBorder p="md" component="section" aria-labelledby="versions">
      <Title order={2} size="h4" id="versions" mb="sm">
        Versions
      </Title>
      <SimpleGrid cols={{ base: 2, sm: 4 }}>
        {shown.map(([name, version]) => (
          <div key={name}>
            <Text size="sm" c="dimmed">
              {name}
            </Text>
            <Text fw={600}>{version}</Text>
          </div>
        ))}
      </SimpleGrid>
    </Paper>
  );
}
