import { Badge, Group, SimpleGrid, Text, Title, UnstyledButton } from "@mantine/core";
import type { Kind } from "#/api/kinds";
import type { Component } from "#/builder/catalogue";
import { Prose } from "#/forms/Prose";
import classes from "./ends.module.css";

interface Props {
  kind: Kind;
  components: Component[];
  current: string | undefined;
  onChoose: (type: string) => void;
}

/** The types there are, a card for each. */
export function TypeGallery({ kind, components, current, onChoose }: Props) {
  return (
    <section aria-label={`Types of ${kind.title.toLowerCase()}`}>
      <Title order={2} size="h4" mb="sm">
        {kind.name === "Source" ? "Where do events come from?" : "Where should events go?"}
      </Title>
      <SimpleGrid cols={{ base: 1, sm: 2, lg: 3 }}>
        {components.map(({ type, summary, guarantee, error }) => (
          <UnstyledButton
            key={type}
            className={classes.card}
            disabled={error !== null}
            aria-pressed={type === current}
            onClick={() => onChoose(type)}
          >
            <Group justify="space-between" mb={4}>
              <Text fw={650}>{type}</Text>
              {guarantee && (
                <Badge tt="none" variant="light">
                  {guarantee}
                </Badge>
              )}
            </Group>
            <Text size="sm" c={error ? "red" : "dimmed"} component="div">
              <Prose text={error ?? summary} />
            </Text>
          </UnstyledButton>
        ))}
      </SimpleGrid>
    </section>
  );
}
