import { Button, Checkbox, Popover, Stack } from "@mantine/core";
import { IconColumns3 } from "@tabler/icons-react";
import type { Kind } from "#/api/kinds";
import { choosable, HIDDEN } from "./columns";

interface Props {
  kind: Kind;
  hidden: readonly string[];
  onHidden: (hidden: string[]) => void;
}

/** Which columns a grid shows. */
export function ColumnsMenu({ kind, hidden, onHidden }: Props) {
  const toggle = (id: string, shown: boolean) =>
    onHidden(shown ? hidden.filter((each) => each !== id) : [...hidden, id]);
  return (
    <Popover position="bottom-end" trapFocus>
      <Popover.Target>
        <Button variant="default" leftSection={<IconColumns3 size={16} />}>
          Columns
        </Button>
      </Popover.Target>
      <Popover.Dropdown>
        <Stack gap="xs" role="group" aria-label="Columns">
          {choosable(kind).map(({ id, label }) => (
            <Checkbox
              key={id}
              label={label}
              checked={!hidden.includes(id)}
              onChange={({ currentTarget }) => toggle(id, currentTarget.checked)}
            />
          ))}
          <Button variant="subtle" size="compact-sm" onClick={() => onHidden([...HIDDEN])}>
            Default columns
          </Button>
        </Stack>
      </Popover.Dropdown>
    </Popover>
  );
}
