import {
  Alert,
  Autocomplete,
  Button,
  Code,
  CopyButton,
  Group,
  Modal,
  Select,
  Stack,
  Text,
  TextInput,
} from "@mantine/core";
import { IconCheck, IconCopy } from "@tabler/icons-react";
import { useState } from "react";
import { useDocuments } from "#/api/documents";
import { KINDS } from "#/api/kinds";
import { includes, userOf, useSession } from "#/api/session";
import classes from "./access.module.css";
import { useTokenActions } from "./api";
import { FormDialog } from "./FormDialog";
import { RoleSelect } from "./RoleSelect";
import { ROLES, type Role, type TokenRole } from "./types";

const NEVER = "never";
const EXPIRIES = [
  { value: "7", label: "7 days" },
  { value: "30", label: "30 days" },
  { value: "90", label: "90 days" },
  { value: "365", label: "1 year" },
  { value: NEVER, label: "never" },
];

/** Creates a token and shows its secret, this one time. */
export function NewTokenDialog({ onClose }: { onClose: () => void }) {
  const { create } = useTokenActions();
  const own: Role = userOf(useSession())?.role ?? "viewer";
  const [name, setName] = useState("");
  const [role, setRole] = useState<TokenRole>("viewer");
  const [source, setSource] = useState("");
  const [expiry, setExpiry] = useState("90");
  if (create.data) return <Secret name={create.data.name} secret={create.data.secret} onClose={onClose} />;
  const submit = () =>
    create.mutate({
      name: name.trim(),
      role,
      ...(role === "ingest" ? { source: source.trim() } : {}),
      ...(expiry === NEVER ? {} : { expires_in_days: Number(expiry) }),
    });
  return (
    <FormDialog title="Create a token" action="Create" request={create} onSubmit={submit} onClose={onClose}>
      <TextInput
        label="Name"
        description="What uses it, such as: nightly import"
        required
        data-autofocus
        value={name}
        onChange={({ currentTarget }) => setName(currentTarget.value)}
      />
      <RoleSelect roles={grantable(own)} value={role} onChange={setRole} />
      {role === "ingest" && <SourceInput value={source} onChange={setSource} />}
      <Select
        label="Expires"
        data={EXPIRIES}
        value={expiry}
        onChange={(next) => next && setExpiry(next)}
        allowDeselect={false}
      />
    </FormDialog>
  );
}

/** The roles of tokens that somebody with a role can create. */
function grantable(own: Role): TokenRole[] {
  return [
    ...ROLES.filter((each) => includes(own, each)),
    ...(includes(own, "operator") ? (["ingest"] as const) : []),
    ...(own === "admin" ? (["worker"] as const) : []),
  ];
}

/** The last part of an `/ingest/` URL: a source, or a pipeline that has its own. */
function SourceInput({ value, onChange }: { value: string; onChange: (source: string) => void }) {
  const { data: sources = [] } = useDocuments(KINDS.Source);
  const { data: pipelines = [] } = useDocuments(KINDS.Pipeline);
  const able = [
    ...sources.filter(({ spec }) => spec?.type === "http"),
    ...pipelines.filter(({ spec }) => spec?.source?.type === "http"),
  ];
  return (
    <Autocomplete
      label="Source"
      description="The token can send events to /ingest/ of this source only."
      data={[...new Set(able.map(({ id }) => id))]}
      value={value}
      onChange={onChange}
      required
    />
  );
}

function Secret({ name, secret, onClose }: { name: string; secret: string; onClose: () => void }) {
  return (
    <Modal
      opened
      onClose={onClose}
      title={`Token ${name}`}
      closeOnClickOutside={false}
      closeButtonProps={{ "aria-label": "Close" }}
    >
      <Stack gap="sm">
        <Alert color="yellow" variant="light">
          Copy the token now. It is not shown again.
        </Alert>
        <Code block className={classes.secret} aria-label="The token" tabIndex={0}>
          {secret}
        </Code>
        <Text size="sm" c="dimmed">
          Send it with each request as the header <Code>Authorization: Bearer TOKEN</Code>.
        </Text>
        <Group justify="flex-end">
          <CopyButton value={secret}>
            {({ copied, copy }) => (
              <Button
                data-autofocus
                variant="default"
                onClick={copy}
                leftSection={copied ? <IconCheck size={16} /> : <IconCopy size={16} />}
              >
                {copied ? "Copied" : "Copy"}
              </Button>
            )}
          </CopyButton>
          <Button onClick={onClose}>Done</Button>
        </Group>
      </Stack>
    </Modal>
  );
}
