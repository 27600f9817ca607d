import { PasswordInput, Text } from "@mantine/core";
import { useState } from "react";
import { done } from "#/components/notify";
import { usePassword } from "./api";
import { FormDialog } from "./FormDialog";
import { NewPassword, useNewPassword } from "./NewPassword";

/** Changes one's own password. */
export function PasswordDialog({ onClose }: { onClose: () => void }) {
  const change = usePassword();
  const [current, setCurrent] = useState("");
  const password = useNewPassword();
  const submit = () => {
    if (!password.check()) return;
    change.mutate(
      { current, new: password.value },
      {
        onSuccess: () => {
          done("Your password is changed.");
          onClose();
        },
      },
    );
  };
  return (
    <FormDialog
      title="Change password"
      action="Change password"
      request={change}
      onSubmit={submit}
      onClose={onClose}
    >
      <Text size="sm" c="dimmed">
        Your sessions in other browsers end. Tokens stay valid.
      </Text>
      <PasswordInput
        label="Current password"
        name="password"
        autoComplete="current-password"
        required
        data-autofocus
        value={current}
        onChange={({ currentTarget }) => setCurrent(currentTarget.value)}
      />
      <NewPassword label="New password" password={password} />
    </FormDialog>
  );
}
