import { Badge, Button, Table, Text } from "@mantine/core";
import { modals } from "@mantine/modals";
import { ago, moment } from "#/components/format";
import { done, failed } from "#/components/notify";
import { WideTable } from "#/components/WideTable";
import classes from "./access.module.css";
import { useTokenActions } from "./api";
import type { Token } from "./types";

/** Tokens, with what each may do and how long. */
export function TokenTable({ tokens, showUsers }: { tokens: readonly Token[]; showUsers: boolean }) {
  return (
    <WideTable least={820} withFrame verticalSpacing="xs" aria-label="Tokens">
      <Table.Thead>
        <Table.Tr>
          <Table.Th>Name</Table.Th>
          <Table.Th>Role</Table.Th>
          {showUsers && <Table.Th>User</Table.Th>}
          <Table.Th>Created</Table.Th>
          <Table.Th>Expires</Table.Th>
          <Table.Th>Last used</Table.Th>
          <Table.Th w={90} aria-label="Actions" />
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {tokens.map((token) => (
          <Table.Tr key={token.id}>
            <Table.Td className={classes.wrap}>{token.name}</Table.Td>
            <Table.Td data-label="Role">
              {token.role}
              {token.source !== null && (
                <Text size="sm" c="dimmed" className={classes.wrap}>
                  source {token.source}
                </Text>
              )}
            </Table.Td>
            {showUsers && (
              <Table.Td data-label="User" className={classes.wrap}>
                {token.user}
              </Table.Td>
            )}
            <Table.Td data-label="Created" title={moment(token.created_at)}>
              {ago(token.created_at)}
            </Table.Td>
            <Table.Td data-label="Expires">
              <Expiry at={token.expires_at} />
            </Table.Td>
            <Table.Td data-label="Last used" title={moment(token.last_used_at)}>
              {ago(token.last_used_at)}
            </Table.Td>
            <Table.Td>
              <Revoke token={token} />
            </Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </WideTable>
  );
}

function Expiry({ at }: { at: string | null }) {
  if (at === null) return "never";
  if (Date.parse(at) > Date.now()) return moment(at);
  return (
    <Badge variant="light" color="red" tt="none" title={moment(at)}>
      expired
    </Badge>
  );
}

function Revoke({ token }: { token: Token }) {
  const { revoke } = useTokenActions();
  const ask = () =>
    modals.openConfirmModal({
      title: `Revoke ${token.name}?`,
      closeButtonProps: { "aria-label": "Close" },
      children: (
        <Text size="sm">Programs that use this token are refused at once. This can't be undone.</Text>
      ),
      labels: { confirm: "Revoke", cancel: "Cancel" },
      confirmProps: { color: "red" },
      onConfirm: () =>
        revoke.mutate(token.id, {
          onSuccess: () => done(`Token ${token.name} is revoked.`),
          onError: (error) => failed(`Token ${token.name} is not revoked`, error),
        }),
    });
  return (
    <Button
      size="compact-sm"
      variant="subtle"
      color="red"
      loading={revoke.isPending}
      onClick={ask}
      aria-label={`Revoke ${token.name}`}
    >
      Revoke
    </Button>
  );
}
