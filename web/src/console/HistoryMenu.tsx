import { Button, Code, Menu, ScrollArea, Text } from "@mantine/core";
import { IconHistory } from "@tabler/icons-react";
import { moment } from "#/components/format";
import classes from "./console.module.css";
import { MOST, type Past } from "./history";

interface Props {
  past: readonly Past[];
  onPick: (sql: string) => void;
  onClear: () => void;
}

/** The queries that were run in this browser. */
export function HistoryMenu({ past, onPick, onClear }: Props) {
  return (
    <Menu position="bottom-end" width={420}>
      <Menu.Target>
        <Button variant="default" leftSection={<IconHistory size={16} />}>
          History
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>
          {past.length === 0 ? "No queries yet." : `The last ${MOST} queries, kept in this browser.`}
        </Menu.Label>
        <ScrollArea.Autosize mah={320} type="auto">
          {past.map(({ sql, at, outcome }) => (
            <Menu.Item key={sql} onClick={() => onPick(sql)}>
              <Code className={classes.line}>{sql}</Code>
              <Text size="xs" c="dimmed">
                {moment(at)} · {outcome}
              </Text>
            </Menu.Item>
          ))}
        </ScrollArea.Autosize>
        {past.length > 0 && (
          <>
            <Menu.Divider />
            <Menu.Item color="red" onClick={onClear}>
              Clear history
            </Menu.Item>
          </>
        )}
      </Menu.Dropdown>
    </Menu>
  );
}
