import { Alert, Button, Group, Text } from "@mantine/core";
import { IconRoute } from "@tabler/icons-react";
import type { Tour } from "./useTour";

/** Offers the tour to someone who has neither taken nor dismissed it. */
export function TourOffer({ tour }: { tour: Tour }) {
  if (!tour.isOffered) return null;
  return (
    <Alert variant="light" icon={<IconRoute size={18} />} mb="md" py="xs">
      <Group justify="space-between" gap="xs">
        <Text size="sm">New to Penstock? The tour shows the app in {tour.count} steps.</Text>
        <Group gap="xs">
          <Button size="compact-sm" onClick={() => tour.go(0)}>
            Take the tour
          </Button>
          <Button size="compact-sm" variant="default" onClick={tour.end}>
            Dismiss
          </Button>
        </Group>
      </Group>
    </Alert>
  );
}
