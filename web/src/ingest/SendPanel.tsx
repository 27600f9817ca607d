import { Stack } from "@mantine/core";
import { HttpAddress } from "./HttpAddress";
import { SendTab } from "./SendTab";

interface Props {
  address: string;
  columns: readonly { name: string; type: string }[];
}

/** How to send events to a document that is saved: its address, a command to copy, and a form. */
export default function SendPanel(props: Props) {
  return (
    <Stack gap="lg" maw={720}>
      <HttpAddress {...props} isSaved />
      <SendTab {...props} isSaved />
    </Stack>
  );
}
