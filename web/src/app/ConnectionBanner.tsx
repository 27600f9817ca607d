import { Alert } from "@mantine/core";
import { IconPlugConnectedX } from "@tabler/icons-react";
import { useEffect, useRef } from "react";
import { useConnection } from "#/api/live";
import { done } from "#/components/notify";

/** Says when the server is gone, and when it is back: what is on the page may be old meanwhile. */
export function ConnectionBanner() {
  const connection = useConnection();
  const lost = useRef(false);
  useEffect(() => {
    if (connection === "open" && lost.current) done("Reconnected to the server. Everything is up to date.");
    lost.current = connection === "lost";
  }, [connection]);
  if (connection !== "lost") return null;
  return (
    <Alert
      color="orange"
      variant="light"
      mb="md"
      icon={<IconPlugConnectedX />}
      title="The server isn't responding"
    >
      This page shows the last known state and reconnects automatically.
    </Alert>
  );
}
