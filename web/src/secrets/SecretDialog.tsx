import { Code, PasswordInput, Select, TextInput } from "@mantine/core";
import { useState } from "react";
import { FormDialog } from "#/access/FormDialog";
import { done } from "#/components/notify";
import { type Secret, useSecretActions } from "./api";
import { ORIGINS, type Origin, specOf } from "./origins";

const FIELDS: Record<Origin, { label: string; description: string }> = {
  value: { label: "Value", description: "It can't be shown again." },
  environment: {
    label: "Variable",
    description: "A variable that documents may use, such as PENSTOCK_VAR_KEY",
  },
  file: { label: "File", description: "A path below secrets.directories, such as /run/secrets/key" },
  vault: {
    label: "Path",
    description: "Path of the secret, then # and its field, such as billing/db#password",
  },
};

/** Creates a secret, or gives one another value. */
export function SecretDialog({ secret, onClose }: { secret?: Secret; onClose: () => void }) {
  const { create, replace } = useSecretActions();
  const [name, setName] = useState(secret?.name ?? "");
  const [origin, setOrigin] = useState<Origin>("value");
  const [text, setText] = useState("");
  const request = secret ? replace : create;
  const submit = () => {
    const document = { metadata: { ...secret?.metadata, name: name.trim() }, spec: specOf(origin, text) };
    const onSuccess = () => {
      done(secret ? `Secret ${secret.name} has another value.` : `Secret ${name.trim()} is created.`);
      onClose();
    };
    if (secret) replace.mutate({ id: secret.id, secret: document }, { onSuccess });
    else create.mutate(document, { onSuccess });
  };
  const Input = origin === "value" ? PasswordInput : TextInput;
  return (
    <FormDialog
      title={secret ? `Change ${secret.name}` : "Create a secret"}
      action={secret ? "Change" : "Create"}
      request={request}
      onSubmit={submit}
      onClose={onClose}
    >
      {!secret && (
        <TextInput
          label="Name"
          description={
            <>
              Documents use it as <Code>{`\${secret:${name.trim() || "name"}}`}</Code>
            </>
          }
          required
          data-autofocus
          value={name}
          onChange={({ currentTarget }) => setName(currentTarget.value)}
        />
      )}
      <Select
        label="Value comes from"
        data={ORIGINS}
        value={origin}
        onChange={(next) => next && setOrigin(next as Origin)}
        allowDeselect={false}
      />
      <Input
        {...FIELDS[origin]}
        key={origin}
        required
        autoComplete="off"
        value={text}
        onChange={({ currentTarget }) => setText(currentTarget.value)}
      />
    </FormDialog>
  );
}
