import { Button, Group, Paper, Text, Title } from "@mantine/core";
import { Link } from "react-router";
import { useSession } from "#/api/session";

/** Whether people have to log in, and how an admin changes that. */
export function Access() {
  const isOn = useSession().authentication === "on";
  return (
    <Paper withBorder p="md" component="section" aria-labelledby="access-settings">
      <Group justify="space-between">
        <div>
          <Title order={2} size="h4" id="access-settings">
            Access
          </Title>
          <Text size="sm" c="dimmed">
            {isOn
              ? "Authentication is on: people log in, programs send a token."
              : "Authentication is off: everybody who can reach this server is an admin."}
          </Text>
        </div>
        <Button component={Link} to="/users" variant="default">
          {isOn ? "Users" : "Add users"}
        </Button>
      </Group>
    </Paper>
  );
}
