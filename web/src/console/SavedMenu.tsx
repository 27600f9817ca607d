import { Button, Code, Group, Menu, ScrollArea, Text } from "@mantine/core";
import { modals } from "@mantine/modals";
import { IconFolder, IconTrash } from "@tabler/icons-react";
import { problemsOf } from "#/api/client";
import { moment } from "#/components/format";
import { done, failed } from "#/components/notify";
import { useDeleteQuery, useSavedQueries } from "./api";
import classes from "./console.module.css";

/** The queries that are saved on the server. */
export function SavedMenu({ onPick }: { onPick: (sql: string) => void }) {
  const saved = useSavedQueries();
  const remove = useDeleteQuery();
  const ask = (name: string) =>
    modals.openConfirmModal({
      title: `Delete the saved query ${name}?`,
      children: <Text size="sm">It is deleted for everyone.</Text>,
      labels: { confirm: "Delete", cancel: "Cancel" },
      confirmProps: { color: "red" },
      onConfirm: () =>
        remove.mutate(name, {
          onSuccess: () => done(`Query ${name} deleted.`),
          onError: (error) => failed("Could not delete the query", error),
        }),
    });
  const items = saved.data ?? [];
  return (
    <Menu position="bottom-end" width={420}>
      <Menu.Target>
        <Button variant="default" leftSection={<IconFolder size={16} />}>
          Saved queries
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>
          {saved.error
            ? problemsOf(saved.error)[0]?.message
            : items.length === 0
              ? "No saved queries yet."
              : "Kept on the server, shared with everyone who can query streams."}
        </Menu.Label>
        <ScrollArea.Autosize mah={320} type="auto">
          {items.map(({ name, sql, user, updated_at }) => (
            <Group key={name} gap={0} wrap="nowrap">
              <Menu.Item onClick={() => onPick(sql)} miw={0} flex={1}>
                <Text size="sm" fw={600}>
                  {name}
                </Text>
                <Code className={classes.line}>{sql}</Code>
                <Text size="xs" c="dimmed">
                  {user ? `${user}, ` : ""}
                  {moment(updated_at)}
                </Text>
              </Menu.Item>
              <Menu.Item
                w="auto"
                color="red"
                aria-label={`Delete the saved query ${name}`}
                onClick={() => ask(name)}
              >
                <IconTrash size={16} />
              </Menu.Item>
            </Group>
          ))}
        </ScrollArea.Autosize>
      </Menu.Dropdown>
    </Menu>
  );
}
