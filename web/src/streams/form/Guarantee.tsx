import { Loader, Paper, Text, Title } from "@mantine/core";
import { useMemo } from "react";
import { KINDS } from "#/api/kinds";
import { useOpinion } from "#/documents/editing/analysis";

/** What an acknowledgement of this stream means, as it is set now. */
export function Guarantee({ spec }: { spec: Record<string, unknown> }) {
  // A stream that has no name yet promises the same as one that has.
  const named = useMemo(() => ({ metadata: { name: "unnamed" }, spec }), [spec]);
  const { guarantee, isChecking } = useOpinion(KINDS.Stream, named);
  return (
    <Paper withBorder p="md">
      <Title order={2} size="h5" mb="xs">
        Delivery guarantee {isChecking && <Loader size={12} aria-label="Checking" />}
      </Title>
      <Text size="sm" aria-live="polite">
        {guarantee ?? "Fix the errors to see the delivery guarantee."}
      </Text>
    </Paper>
  );
}
