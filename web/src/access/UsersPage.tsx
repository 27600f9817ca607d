import { Alert, Badge, Button } from "@mantine/core";
import { IconLockOpen, IconPlus } from "@tabler/icons-react";
import { useState } from "react";
import { useSession } from "#/api/session";
import { Empty, Loading, Page } from "#/components/Page";
import { Failure } from "#/components/Problems";
import { useUsers } from "./api";
import { NewUserDialog } from "./NewUserDialog";
import { UserTable } from "./UserTable";

/** The people who may log in, for admins. */
export default function UsersPage() {
  const { authentication } = useSession();
  const { data: users, error } = useUsers();
  const [adding, setAdding] = useState(false);
  const isOff = authentication === "off";
  const add = (
    <Button leftSection={<IconPlus size={16} />} onClick={() => setAdding(true)}>
      Add a user
    </Button>
  );
  return (
    <Page
      title="Users"
      beside={users && <Badge variant="default">{users.length}</Badge>}
      about="The people who can log in. A role includes all roles before it: viewer, operator, editor, admin."
      actions={users?.length ? add : undefined}
    >
      {isOff && (
        <Alert color="yellow" variant="light" icon={<IconLockOpen />} title="Authentication is off">
          Everybody who can reach this server is an admin. The first user that you add is an admin, and from
          then on everybody has to log in, programs with a token.
        </Alert>
      )}
      <Failure error={error} title="The users could not be loaded" />
      {users === undefined ? (
        !error && <Loading what="Loading the users" />
      ) : users.length === 0 ? (
        <Empty title="No users yet" action={add}>
          Add the first one to turn authentication on.
        </Empty>
      ) : (
        <UserTable users={users} />
      )}
      {adding && <NewUserDialog isFirst={isOff} onClose={() => setAdding(false)} />}
    </Page>
  );
}
