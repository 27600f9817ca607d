import { Button, Group, Popover, Stack, Text, TextInput } from "@mantine/core";
import { IconDeviceFloppy } from "@tabler/icons-react";
import { type FormEvent, useState } from "react";
import { problemsOf } from "#/api/client";
import { done } from "#/components/notify";
import { useSavedQueries, useSaveQuery } from "./api";

/** Saves the query on the server under a name. */
export function SaveQuery({ sql }: { sql: string }) {
  const [opened, setOpened] = useState(false);
  const [name, setName] = useState("");
  const save = useSaveQuery();
  const exists = useSavedQueries().data?.some((each) => each.name === name.trim());
  const submit = (event: FormEvent) => {
    event.preventDefault();
    save.mutate(
      { name: name.trim(), sql },
      {
        onSuccess: () => {
          setOpened(false);
          done(`Query ${name.trim()} saved.`);
        },
      },
    );
  };
  const wrong = name.includes("/") ? "A name can't contain /." : undefined;
  return (
    <Popover opened={opened} onChange={setOpened} position="bottom-end" trapFocus>
      <Popover.Target>
        <Button
          variant="default"
          leftSection={<IconDeviceFloppy size={16} />}
          disabled={sql.trim() === ""}
          onClick={() => setOpened(!opened)}
        >
          Save
        </Button>
      </Popover.Target>
      <Popover.Dropdown>
        <Stack component="form" gap="xs" onSubmit={submit} w={280}>
          <TextInput
            label="Name"
            value={name}
            maxLength={128}
            onChange={({ currentTarget }) => setName(currentTarget.value)}
            error={wrong ?? (save.error ? problemsOf(save.error)[0]?.message : undefined)}
            data-autofocus
          />
          <Text size="xs" c="dimmed">
            Kept on the server, shared with everyone who can query streams.
          </Text>
          <Group justify="flex-end">
            <Button
              type="submit"
              loading={save.isPending}
              disabled={name.trim() === "" || wrong !== undefined}
            >
              {exists ? "Replace" : "Save query"}
            </Button>
          </Group>
        </Stack>
      </Popover.Dropdown>
    </Popover>
  );
}
