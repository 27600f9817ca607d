import { Anchor, Badge, Button, Code, Group, Table, Text } from "@mantine/core";
import { modals } from "@mantine/modals";
import { IconPlus } from "@tabler/icons-react";
import { useState } from "react";
import { Link } from "react-router";
import { Allowed } from "#/access/Allowed";
import { type KindName, pageOf } from "#/api/kinds";
import { ago, moment } from "#/components/format";
import { done, failed } from "#/components/notify";
import { Empty, Loading, Page } from "#/components/Page";
import { Failure } from "#/components/Problems";
import { WideTable } from "#/components/WideTable";
import { type Secret, useSecretActions, useSecrets } from "./api";
import { originOf } from "./origins";
import { SecretDialog } from "./SecretDialog";

const USE = `\${secret:name}`;

/** Secrets: where each has its value, and what uses it. Values are never shown. */
export default function SecretsPage() {
  const { data: secrets, error } = useSecrets();
  const [creating, setCreating] = useState(false);
  const [changed, setChanged] = useState<Secret | null>(null);
  const create = (
    <Allowed needs="editor">
      <Button leftSection={<IconPlus size={16} />} onClick={() => setCreating(true)}>
        Create a secret
      </Button>
    </Allowed>
  );
  return (
    <Page
      title="Secrets"
      beside={secrets && <Badge variant="default">{secrets.length}</Badge>}
      about={
        <>
          Passwords and keys that documents use as <Code>{USE}</Code>. Values are encrypted, read by workers
          only, and never shown.
        </>
      }
      actions={secrets?.length ? create : undefined}
    >
      <Failure error={error} title="The secrets could not be loaded" />
      {secrets === undefined ? (
        !error && <Loading what="Loading the secrets" />
      ) : secrets.length === 0 ? (
        <Empty title="No secrets yet" action={create}>
          Passwords and keys of sources and sinks belong here, not in documents.
        </Empty>
      ) : (
        <SecretTable secrets={secrets} onChange={setChanged} />
      )}
      {creating && <SecretDialog onClose={() => setCreating(false)} />}
      {changed && <SecretDialog secret={changed} onClose={() => setChanged(null)} />}
    </Page>
  );
}

interface TableProps {
  secrets: readonly Secret[];
  onChange: (secret: Secret) => void;
}

function SecretTable({ secrets, onChange }: TableProps) {
  return (
    <WideTable least={720} verticalSpacing="xs" aria-label="Secrets">
      <Table.Thead>
        <Table.Tr>
          <Table.Th>Name</Table.Th>
          <Table.Th>Value</Table.Th>
          <Table.Th>Used by</Table.Th>
          <Table.Th>Changed</Table.Th>
          <Table.Th w={160} aria-label="Actions" />
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {secrets.map((secret) => (
          <Table.Tr key={secret.id}>
            <Table.Td>{secret.name}</Table.Td>
            <Table.Td data-label="Value">{originOf(secret.spec)}</Table.Td>
            <Table.Td data-label="Used by">
              <Users secret={secret} />
            </Table.Td>
            <Table.Td data-label="Changed" title={moment(secret.updated_at)}>
              {ago(secret.updated_at)}
            </Table.Td>
            <Table.Td>
              <Allowed needs="editor">
                <Group gap={4} wrap="nowrap">
                  <Button
                    size="compact-sm"
                    variant="subtle"
                    onClick={() => onChange(secret)}
                    aria-label={`Change ${secret.name}`}
                  >
                    Change
                  </Button>
                  <Delete secret={secret} />
                </Group>
              </Allowed>
            </Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </WideTable>
  );
}

function Users({ secret }: { secret: Secret }) {
  const users = secret.referrers ?? [];
  if (users.length === 0)
    return (
      <Text size="sm" c="dimmed">
        nothing
      </Text>
    );
  return (
    <Group gap="xs">
      {users.map(({ kind, id, name }) => (
        <Anchor key={`${kind}/${id}`} size="sm" component={Link} to={pageOf(kind as KindName, id)}>
          {name}
        </Anchor>
      ))}
    </Group>
  );
}

function Delete({ secret }: { secret: Secret }) {
  const { remove } = useSecretActions();
  const ask = () =>
    modals.openConfirmModal({
      title: `Delete ${secret.name}?`,
      closeButtonProps: { "aria-label": "Close" },
      children: <Text size="sm">Its value is lost. This can't be undone.</Text>,
      labels: { confirm: "Delete", cancel: "Cancel" },
      confirmProps: { color: "red" },
      onConfirm: () =>
        remove.mutate(secret.id, {
          onSuccess: () => done(`Secret ${secret.name} is deleted.`),
          onError: (error) => failed(`Secret ${secret.name} is not deleted`, error),
        }),
    });
  return (
    <Button
      size="compact-sm"
      variant="subtle"
      color="red"
      loading={remove.isPending}
      onClick={ask}
      aria-label={`Delete ${secret.name}`}
    >
      Delete
    </Button>
  );
}
