import { Badge, Group, List, Stack, Text } from "@mantine/core";
import { IconCheck, IconRefresh, IconTrash } from "@tabler/icons-react";
import type { Effect } from "./planning";

const SIGNS = {
  keeps: { color: "teal", icon: <IconCheck size={12} />, text: "unchanged" },
  restarts: { color: "blue", icon: <IconRefresh size={12} />, text: "restarts" },
  resets: { color: "red", icon: <IconTrash size={12} />, text: "reset" },
};

/** What an edit does to each part of a flow; parts that nothing happens to are only counted. */
export function Effects({ title, steps }: { title?: string; steps: readonly Effect[] }) {
  const touched = steps.filter((step) => step.effect !== "keeps");
  const kept = steps.length - touched.length;
  if (steps.length === 0) return null;
  return (
    <Stack gap="xs">
      {title && (
        <Text size="sm" fw={600}>
          {title}
        </Text>
      )}
      <List listStyleType="none" spacing="xs">
        {touched.map((step) => (
          <List.Item key={`${step.part} ${step.id}`}>
            <Group gap="xs" wrap="wrap">
              <Text size="sm" fw={500} style={{ overflowWrap: "anywhere" }}>
                {step.part === "policy" || step.part === step.id ? step.id : `${step.part} ${step.id}`}
              </Text>
              <Badge
                tt="none"
                variant="light"
                color={SIGNS[step.effect].color}
                leftSection={SIGNS[step.effect].icon}
              >
                {SIGNS[step.effect].text}
              </Badge>
            </Group>
            <Text size="sm" c="dimmed">
              {step.why}
              {step.from && `; to rebuild the state, read again from ${step.from}`}
            </Text>
          </List.Item>
        ))}
      </List>
      {kept > 0 && (
        <Group gap="xs">
          <Badge tt="none" variant="light" color={SIGNS.keeps.color} leftSection={SIGNS.keeps.icon}>
            {SIGNS.keeps.text}
          </Badge>
          <Text size="sm" c="dimmed">
            {touched.length === 0 ? "every part" : kept === 1 ? "one other part" : `${kept} other parts`}
          </Text>
        </Group>
      )}
    </Stack>
  );
}
