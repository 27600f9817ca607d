import { ActionIcon, Menu } from "@mantine/core";
import { IconApi, IconHelp, IconRoute } from "@tabler/icons-react";
import type { Tour } from "./useTour";

/** The tour, and the reference of the API. */
export function HelpMenu({ tour }: { tour: Tour }) {
  return (
    <Menu position="bottom-end" width={200}>
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" size="lg" aria-label="Help">
          <IconHelp size={18} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item leftSection={<IconRoute size={16} />} onClick={() => tour.go(0)}>
          Take the tour
        </Menu.Item>
        <Menu.Item leftSection={<IconApi size={16} />} component="a" href="/docs" target="_blank">
          REST API
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
