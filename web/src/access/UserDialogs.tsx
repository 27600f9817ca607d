import { Text } from "@mantine/core";
import { useState } from "react";
import { done } from "#/components/notify";
import { useUserActions } from "./api";
import { FormDialog } from "./FormDialog";
import { NewPassword, useNewPassword } from "./NewPassword";
import { RoleSelect } from "./RoleSelect";
import { ROLES, type User } from "./types";

interface Props {
  user: User;
  onClose: () => void;
}

/** Gives a user another role. */
export function RoleDialog({ user, onClose }: Props) {
  const { change } = useUserActions();
  const [role, setRole] = useState(user.role);
  return (
    <FormDialog
      title={`Change the role of ${user.name}`}
      action="Change role"
      request={change}
      onClose={onClose}
      onSubmit={() =>
        change.mutate(
          { name: user.name, role },
          { onSuccess: () => finish(`User ${user.name} is ${role} now.`, onClose) },
        )
      }
    >
      <RoleSelect roles={ROLES} value={role} onChange={setRole} />
    </FormDialog>
  );
}

/** Gives a user another password, which the admin has to pass on. */
export function ResetPasswordDialog({ user, onClose }: Props) {
  const { change } = useUserActions();
  const password = useNewPassword();
  return (
    <FormDialog
      title={`Reset the password of ${user.name}`}
      action="Reset password"
      request={change}
      onClose={onClose}
      onSubmit={() => {
        if (!password.check()) return;
        change.mutate(
          { name: user.name, password: password.value },
          { onSuccess: () => finish(`The password of ${user.name} is changed.`, onClose) },
        );
      }}
    >
      <Text size="sm">All sessions of {user.name} end. Tell the new password to this person.</Text>
      <NewPassword label="New password" password={password} />
    </FormDialog>
  );
}

/** Keeps a user from logging in. */
export function DisableUserDialog({ user, onClose }: Props) {
  const { change } = useUserActions();
  return (
    <FormDialog
      title={`Disable ${user.name}?`}
      action="Disable"
      request={change}
      onClose={onClose}
      onSubmit={() =>
        change.mutate(
          { name: user.name, disabled: true },
          { onSuccess: () => finish(`User ${user.name} is disabled.`, onClose) },
        )
      }
    >
      <Text size="sm">
        {user.name} can't log in and can't use tokens until an admin enables the user again.
      </Text>
    </FormDialog>
  );
}

/** Removes a user. */
export function DeleteUserDialog({ user, onClose }: Props) {
  const { remove } = useUserActions();
  return (
    <FormDialog
      title={`Delete ${user.name}?`}
      action="Delete"
      isDangerous
      request={remove}
      onClose={onClose}
      onSubmit={() =>
        remove.mutate(user.name, { onSuccess: () => finish(`User ${user.name} is deleted.`, onClose) })
      }
    >
      <Text size="sm">
        The sessions and tokens of {user.name} end at once. Entries of the audit log stay. This can't be
        undone.
      </Text>
    </FormDialog>
  );
}

function finish(message: string, onClose: () => void): void {
  done(message);
  onClose();
}
