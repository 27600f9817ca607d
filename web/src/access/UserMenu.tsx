import { Button, Menu, Text } from "@mantine/core";
import { IconKey, IconLogout, IconPassword, IconUser } from "@tabler/icons-react";
import { useState } from "react";
import { Link, useNavigate } from "react-router";
import { useSession } from "#/api/session";
import { failed } from "#/components/notify";
import { useLogout } from "./api";
import { PasswordDialog } from "./PasswordDialog";

/** Who is logged in, and what they can do about it. */
export default function UserMenu() {
  const { user } = useSession();
  const [changing, setChanging] = useState(false);
  const logout = useLogout();
  const navigate = useNavigate();
  if (user === null) return null;
  const leave = () =>
    logout.mutateAsync().then(
      () => navigate("/login", { replace: true }),
      (error) => failed("You are still logged in", error),
    );
  return (
    <>
      <Menu position="bottom-end" width={220}>
        <Menu.Target>
          <Button variant="subtle" color="gray" px="xs" aria-label={`Account of ${user.name}`}>
            <IconUser size={18} stroke={1.6} />
            <Text span size="sm" visibleFrom="sm" maw={160} truncate ml="xs">
              {user.name}
            </Text>
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Label>
            {user.name}, {user.role}
          </Menu.Label>
          {user.via === "password" && (
            <Menu.Item leftSection={<IconPassword size={16} />} onClick={() => setChanging(true)}>
              Change password
            </Menu.Item>
          )}
          <Menu.Item leftSection={<IconKey size={16} />} component={Link} to="/tokens?mine">
            My tokens
          </Menu.Item>
          <Menu.Divider />
          <Menu.Item leftSection={<IconLogout size={16} />} onClick={leave}>
            Log out
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
      {changing && <PasswordDialog onClose={() => setChanging(false)} />}
    </>
  );
}
