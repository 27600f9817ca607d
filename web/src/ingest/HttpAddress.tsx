import { ActionIcon, Code, CopyButton, Group, Stack, Text, Tooltip } from "@mantine/core";
import { IconCheck, IconCopy } from "@tabler/icons-react";
import { useSession } from "#/api/session";
import { curlOf, sampleBody } from "./address";

interface Props {
  /** Such as /ingest/orders. */
  address: string;
  columns: readonly { name: string; type: string }[];
  /** Whether the pipeline exists, so that the address works. */
  isSaved: boolean;
}

/** The address of an HTTP source, and a command line that sends an event to it. */
export function HttpAddress({ address, columns, isSaved }: Props) {
  const hasLogin = useSession().authentication === "on";
  const url = `${globalThis.location.origin}${address}`;
  return (
    <Stack gap={4} component="section" aria-label="Address">
      <Text size="sm" fw={500}>
        Address
      </Text>
      <Copied label="address" text={url} />
      <Copied label="curl command" text={curlOf(url, sampleBody(columns), hasLogin)} />
      <Text size="xs" c="dimmed">
        {isSaved
          ? "Events are stored before the response is sent."
          : "Accepts events as soon as the pipeline is saved."}
      </Text>
    </Stack>
  );
}

function Copied({ label, text }: { label: string; text: string }) {
  return (
    <Group gap={4} wrap="nowrap" align="flex-start">
      <Code
        block
        flex={1}
        tabIndex={0}
        aria-label={label}
        style={{ whiteSpace: "pre-wrap", wordBreak: "break-all" }}
      >
        {text}
      </Code>
      <CopyButton value={text}>
        {({ copied, copy }) => (
          <Tooltip label={copied ? "Copied" : `Copy the ${label}`}>
            <ActionIcon variant="subtle" color="gray" aria-label={`Copy the ${label}`} onClick={copy}>
              {copied ? <IconCheck size={16} /> : <IconCopy size={16} />}
            </ActionIcon>
          </Tooltip>
        )}
      </CopyButton>
    </Group>
  );
}
