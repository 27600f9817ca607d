import { ActionIcon, Badge, Group, Menu, Table, Text } from "@mantine/core";
import {
  IconDots,
  IconLock,
  IconLockOpen,
  IconPassword,
  IconTrash,
  IconUserShield,
} from "@tabler/icons-react";
import { useState } from "react";
import { useSession } from "#/api/session";
import { ago, moment } from "#/components/format";
import { done, failed } from "#/components/notify";
import { WideTable } from "#/components/WideTable";
import classes from "./access.module.css";
import { useUserActions } from "./api";
import type { User } from "./types";
import { DeleteUserDialog, DisableUserDialog, ResetPasswordDialog, RoleDialog } from "./UserDialogs";

const VIA: Record<User["via"], string> = { password: "password", oidc: "single sign-on" };

type Asked = "role" | "password" | "disable" | "delete";

/** Users with their roles, and what an admin can do with each. */
export function UserTable({ users }: { users: readonly User[] }) {
  const [asked, setAsked] = useState<{ what: Asked; user: User } | null>(null);
  const close = () => setAsked(null);
  return (
    <>
      <WideTable least={680} withFrame verticalSpacing="xs" aria-label="Users">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Name</Table.Th>
            <Table.Th>Role</Table.Th>
            <Table.Th>Logs in with</Table.Th>
            <Table.Th>Created</Table.Th>
            <Table.Th>Last login</Table.Th>
            <Table.Th w={50} aria-label="Actions" />
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {users.map((user) => (
            <Row key={user.name} user={user} onAsk={(what) => setAsked({ what, user })} />
          ))}
        </Table.Tbody>
      </WideTable>
      {asked?.what === "role" && <RoleDialog user={asked.user} onClose={close} />}
      {asked?.what === "password" && <ResetPasswordDialog user={asked.user} onClose={close} />}
      {asked?.what === "disable" && <DisableUserDialog user={asked.user} onClose={close} />}
      {asked?.what === "delete" && <DeleteUserDialog user={asked.user} onClose={close} />}
    </>
  );
}

function Row({ user, onAsk }: { user: User; onAsk: (what: Asked) => void }) {
  const me = useSession().user?.name;
  return (
    <Table.Tr>
      <Table.Td>
        <Group gap="xs" wrap="nowrap">
          <Text size="sm" fw={550} className={classes.wrap}>
            {user.name}
          </Text>
          {user.name === me && (
            <Badge variant="default" tt="none">
              you
            </Badge>
          )}
          {user.disabled && (
            <Badge variant="light" color="red" tt="none">
              disabled
            </Badge>
          )}
        </Group>
      </Table.Td>
      <Table.Td data-label="Role">{user.role}</Table.Td>
      <Table.Td data-label="Logs in with">{VIA[user.via]}</Table.Td>
      <Table.Td data-label="Created" title={moment(user.created_at)}>
        {ago(user.created_at)}
      </Table.Td>
      <Table.Td data-label="Last login" title={moment(user.last_login_at)}>
        {ago(user.last_login_at)}
      </Table.Td>
      <Table.Td>
        <Actions user={user} onAsk={onAsk} />
      </Table.Td>
    </Table.Tr>
  );
}

function Actions({ user, onAsk }: { user: User; onAsk: (what: Asked) => void }) {
  const { change } = useUserActions();
  const enable = () =>
    change.mutate(
      { name: user.name, disabled: false },
      {
        onSuccess: () => done(`User ${user.name} is enabled.`),
        onError: (error) => failed(`User ${user.name} is not enabled`, error),
      },
    );
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" aria-label={`Actions of ${user.name}`}>
          <IconDots size={18} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item leftSection={<IconUserShield size={16} />} onClick={() => onAsk("role")}>
          Change role
        </Menu.Item>
        {user.via === "password" && (
          <Menu.Item leftSection={<IconPassword size={16} />} onClick={() => onAsk("password")}>
            Reset password
          </Menu.Item>
        )}
        {user.disabled ? (
          <Menu.Item leftSection={<IconLockOpen size={16} />} onClick={enable}>
            Enable
          </Menu.Item>
        ) : (
          <Menu.Item leftSection={<IconLock size={16} />} onClick={() => onAsk("disable")}>
            Disable
          </Menu.Item>
        )}
        <Menu.Divider />
        <Menu.Item color="red" leftSection={<IconTrash size={16} />} onClick={() => onAsk("delete")}>
          Delete
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
