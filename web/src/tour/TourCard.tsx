import { Button, CloseButton, Group, Paper, Text, Title } from "@mantine/core";
import classes from "./tour.module.css";
import type { Tour } from "./useTour";

/** The current step of the tour, beside the page that it is about. */
export function TourCard({ tour: { step, place, count, go, end } }: { tour: Tour }) {
  if (step === null) return null;
  return (
    <Paper
      component="section"
      aria-label="Tour"
      className={classes.card}
      withBorder
      shadow="lg"
      p="md"
      radius="md"
    >
      <Group justify="space-between" wrap="nowrap" mb={4}>
        <Title order={2} size="h5">
          {step.title}
        </Title>
        <CloseButton aria-label="End the tour" onClick={end} />
      </Group>
      <Text size="sm" aria-live="polite">
        {step.text}
      </Text>
      <Group justify="space-between" mt="sm">
        <Text size="xs" c="dimmed">
          Step {place + 1} of {count}
        </Text>
        <Group gap="xs">
          {place > 0 && (
            <Button size="compact-sm" variant="default" onClick={() => go(place - 1)}>
              Back
            </Button>
          )}
          {place + 1 < count ? (
            <Button size="compact-sm" onClick={() => go(place + 1)}>
              Next
            </Button>
          ) : (
            <Button size="compact-sm" onClick={end}>
              Done
            </Button>
          )}
        </Group>
      </Group>
    </Paper>
  );
}
