import {
  Anchor,
  Box,
  Button,
  Group,
  Paper,
  Stack,
  Text,
  ThemeIcon,
  Title,
  VisuallyHidden,
} from "@mantine/core";
import { IconAlertOctagon, IconAlertTriangle, IconCheck, IconInfoCircle } from "@tabler/icons-react";
import { useState } from "react";
import { Link } from "react-router";
import type { Attention, Pulse } from "#/api/overview";
import { ago, moment, plural } from "#/components/format";
import { Prose } from "#/forms/Prose";
import { repairAt, repairLabel, tally } from "./attention";
import classes from "./overview.module.css";

const FIRST = 5;

/** What a person should look at, most urgent first, and what to do about it. */
export function AttentionList({ pulse }: { pulse: Pulse }) {
  const [all, setAll] = useState(false);
  const attention = pulse.overview?.attention ?? [];
  if (attention.length === 0) return <AllIsWell pulse={pulse} />;
  const shown = all ? attention : attention.slice(0, FIRST);
  return (
    <Paper withBorder component="section" aria-labelledby="attention">
      <Group px="md" py="sm" justify="space-between">
        <Title order={2} size="h4" id="attention">
          Needs attention
        </Title>
        <Text size="sm" c="dimmed">
          {tally(attention)}
        </Text>
      </Group>
      <Stack gap={0} component="ul" className={classes.list}>
        {shown.map((each) => (
          <Item key={`${each.code} ${each.key} ${each.message}`} item={each} />
        ))}
      </Stack>
      {attention.length > FIRST && (
        <Group justify="center" p="xs" className={classes.item}>
          <Button variant="subtle" size="compact-sm" onClick={() => setAll(!all)}>
            {all ? "Show only the most urgent" : `Show all ${attention.length}`}
          </Button>
        </Group>
      )}
    </Paper>
  );
}

const SEVERITIES = {
  error: { word: "Error", color: "red", icon: IconAlertOctagon },
  warning: { word: "Warning", color: "orange", icon: IconAlertTriangle },
  info: { word: "Note", color: "blue", icon: IconInfoCircle },
};

function Item({ item }: { item: Attention }) {
  const { word, color, icon: Icon } = SEVERITIES[item.severity];
  const to = repairAt(item);
  return (
    <Group component="li" className={classes.item} px="md" py="sm" gap="sm" align="flex-start" wrap="nowrap">
      <ThemeIcon variant="light" color={color} size="md" aria-hidden>
        <Icon size={17} stroke={1.8} />
      </ThemeIcon>
      <Box flex={1} miw={0}>
        <Text size="sm" fw={550} className={classes.wrap}>
          <VisuallyHidden>{word}: </VisuallyHidden>
          {item.message}
        </Text>
        <Text size="sm" c="dimmed" className={classes.wrap}>
          <Prose text={item.advice} />
        </Text>
        <Group gap="md" mt={2}>
          {to !== null && (
            <Anchor component={Link} to={to} size="sm">
              {repairLabel(item)}
            </Anchor>
          )}
          {item.since !== null && (
            <Text size="xs" c="dimmed" title={moment(item.since)}>
              {ago(item.since)}
            </Text>
          )}
        </Group>
      </Box>
    </Group>
  );
}

function AllIsWell({ pulse }: { pulse: Pulse }) {
  const running = [...pulse.flows.values()].filter((flow) => flow.phase === "running").length;
  return (
    <Paper withBorder p="md" component="section" aria-labelledby="attention">
      <Group gap="sm" wrap="nowrap">
        <ThemeIcon variant="light" color="teal" radius="xl" size="lg" aria-hidden>
          <IconCheck size={20} />
        </ThemeIcon>
        <Box>
          <Title order={2} size="h4" id="attention">
            Everything is running normally
          </Title>
          <Text size="sm" c="dimmed">
            {running === 0
              ? "No flow is running. Nothing needs attention."
              : `${plural(running, "running flow")}. Nothing needs attention.`}
          </Text>
        </Box>
      </Group>
    </Paper>
  );
}
