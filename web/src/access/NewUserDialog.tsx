import { Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { done } from "#/components/notify";
import { useUserActions } from "./api";
import { FormDialog } from "./FormDialog";
import { NewPassword, useNewPassword } from "./NewPassword";
import { RoleSelect } from "./RoleSelect";
import { ROLES, type Role } from "./types";

interface Props {
  /** The first user of all, who has to be an admin. */
  isFirst: boolean;
  onClose: () => void;
}

/** Adds a user with a first password. */
export function NewUserDialog({ isFirst, onClose }: Props) {
  const { add } = useUserActions();
  const [name, setName] = useState("");
  const [role, setRole] = useState<Role>(isFirst ? "admin" : "viewer");
  const password = useNewPassword();
  const submit = () => {
    if (!password.check()) return;
    add.mutate(
      { name: name.trim(), role, password: password.value },
      {
        onSuccess: (user) => {
          done(`User ${user.name} is added.`);
          onClose();
        },
      },
    );
  };
  return (
    <FormDialog title="Add a user" action="Add" request={add} onSubmit={submit} onClose={onClose}>
      {isFirst && (
        <Text size="sm">This user is the first admin. As soon as it is added, you have to log in.</Text>
      )}
      <TextInput
        label="Name"
        name="username"
        autoComplete="off"
        autoCapitalize="none"
        spellCheck={false}
        required
        data-autofocus
        value={name}
        onChange={({ currentTarget }) => setName(currentTarget.value)}
      />
      <RoleSelect roles={isFirst ? ["admin"] : ROLES} value={role} onChange={setRole} />
      <NewPassword label="Password" password={password} />
      <Text size="sm" c="dimmed">
        Tell the password to this person, who can change it after logging in.
      </Text>
    </FormDialog>
  );
}
