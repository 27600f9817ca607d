import { Loader, Paper, Text, Title } from "@mantine/core";
import type { Opinion } from "#/documents/editing/analysis";

/** What an acknowledgement of this stream means, as it is set now. */
export function Guarantee({ opinion: { guarantee, isChecking } }: { opinion: Opinion }) {
  return (
    <Paper withBorder p="md">
      <Title order={2} size="h5" mb="xs">
        What it promises {isChecking && <Loader size={12} aria-label="Checking" />}
      </Title>
      <Text size="sm" aria-live="polite">
        {guarantee ?? "Told once the settings are valid and the stream has a name."}
      </Text>
    </Paper>
  );
}
