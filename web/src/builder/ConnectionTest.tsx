import { Button, Stack, Text } from "@mantine/core";
import { IconPlugConnected } from "@tabler/icons-react";
import { useMutation } from "@tanstack/react-query";
import { api, body, problemsOf } from "#/api/client";
import { Problems } from "#/components/Problems";
import type { Fields } from "#/documents/editing/yaml";

const SHOWN = 10;

interface Props {
  side: "source" | "sink";
  type: string;
  value: Fields;
}

/** A button that lets a worker try to connect, and what came of it. */
export function ConnectionTest({ side, type, value }: Props) {
  const test = useMutation({
    mutationFn: (spec: Fields) =>
      body(api.POST("/connectors/{type}/check", { params: { path: { type } }, body: { role: side, spec } })),
  });
  const changed = test.variables !== value;
  const found = changed ? undefined : test.data;
  return (
    <Stack gap="xs" align="flex-start">
      <Button
        variant="default"
        leftSection={<IconPlugConnected size={16} />}
        loading={test.isPending}
        onClick={() => test.mutate(value)}
      >
        Test connection
      </Button>
      {test.error && !changed && <Problems problems={problemsOf(test.error)} />}
      {found && <Problems problems={found.problems ?? []} />}
      {found?.problems?.length === 0 && (
        <Text size="sm" role="status" c={found.checked ? "green" : "dimmed"}>
          {found.checked ? "Connection OK." : "This connector has no connection test."}
        </Text>
      )}
      {Object.entries(found?.offers ?? {}).map(([name, offered]) => (
        <Text key={name} size="sm" c="dimmed">
          {`${name}: ${offered.slice(0, SHOWN).join(", ")}${offered.length > SHOWN ? ", …" : ""}`}
        </Text>
      ))}
    </Stack>
  );
}
