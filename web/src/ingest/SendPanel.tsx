import { Stack } from "@mantine/core";
import { useDocuments } from "#/api/documents";
import { KINDS } from "#/api/kinds";
import { columnsOf } from "#/streams/ddl";
import type { Entrance } from "./address";
import { HttpAddress } from "./HttpAddress";
import { SendTab } from "./SendTab";

/** How to send events to a document that is saved: its address, a command to copy, and a form. */
export default function SendPanel({ address, columns, stream }: Entrance) {
  const { data: streams } = useDocuments(KINDS.Stream);
  const schema = streams?.find(({ id }) => id === stream)?.spec.schema;
  const given = { address, columns: schema ? columnsOf(schema) : columns };
  return (
    <Stack gap="lg" maw={720}>
      <HttpAddress {...given} isSaved />
      <SendTab {...given} isSaved />
    </Stack>
  );
}
