import { Box, Button, Code, Text } from "@mantine/core";
import { useState } from "react";

const SHOWN = 5;

/** What a step has printed; long logs are folded. */
export function StepLogs({ lines }: { lines: readonly string[] }) {
  const [all, setAll] = useState(false);
  if (lines.length === 0) return null;
  return (
    <Box>
      <Text size="xs" c="dimmed">
        Script output
      </Text>
      <Code block fz="xs" mah={240} tabIndex={0}>
        {(all ? lines : lines.slice(0, SHOWN)).join("\n")}
      </Code>
      {lines.length > SHOWN && (
        <Button variant="subtle" size="compact-xs" onClick={() => setAll(!all)}>
          {all ? "Show fewer" : `Show all ${lines.length} lines`}
        </Button>
      )}
    </Box>
  );
}
