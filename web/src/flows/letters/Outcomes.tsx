import { List, Stack, Table, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { Kind } from "#/api/kinds";
import { count } from "#/components/format";
import { Problems } from "#/components/Problems";
import { type Choice, letter, type ReplayResult } from "./api";

interface Props {
  kind: Kind;
  id: string;
  result: ReplayResult;
  choice: Choice;
}

/** What has become of letters that were replayed: in numbers, and of each that was chosen by hand. */
export function Outcomes({ kind, id, result, choice }: Props) {
  const { replayed = 0, failed_again = 0, refused = [], error } = result;
  return (
    <Stack gap="sm">
      <div role="status">
        <List size="sm">
          <List.Item>{count(replayed)} delivered to their sinks</List.Item>
          {failed_again > 0 && (
            <List.Item>{count(failed_again)} failed again; each is kept as a new letter</List.Item>
          )}
          {refused.length > 0 && <List.Item>{count(refused.length)} rejected and left unchanged</List.Item>}
        </List>
      </div>
      {error && (
        <Problems problems={[error]} title="The replay stopped early. Run it again to replay the rest" />
      )}
      {"offsets" in choice ? (
        <Each kind={kind} id={id} result={result} offsets={choice.offsets} />
      ) : (
        <Refused refused={refused} />
      )}
    </Stack>
  );
}

function Each({ kind, id, result, offsets }: Omit<Props, "choice"> & { offsets: readonly number[] }) {
  const letters = useQuery({
    queryKey: ["replayed letters", kind.place, id, result.request, offsets],
    queryFn: () => Promise.all(offsets.map((offset) => letter(kind, id, offset))),
    gcTime: 0,
  });
  const refused = new Map((result.refused ?? []).map((each) => [each.offset, each.message]));
  const told = (place: number) => {
    const why = refused.get(offsets[place]!);
    if (why !== undefined) return `refused: ${why}`;
    const found = letters.data?.[place];
    if (!found) return "…";
    const outcome = found.replays.at(-1)?.outcome;
    if (found.state === "replaying") return "in progress";
    return outcome === "failed_again"
      ? "failed again; kept as a new letter"
      : outcome === "delivered"
        ? "delivered"
        : found.state;
  };
  return (
    <Table verticalSpacing={4} aria-label="Outcome of each letter">
      <Table.Thead>
        <Table.Tr>
          <Table.Th w={80}>Letter</Table.Th>
          <Table.Th>Outcome</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {offsets.map((offset, place) => (
          <Table.Tr key={offset}>
            <Table.Td>{offset}</Table.Td>
            <Table.Td style={{ overflowWrap: "anywhere" }}>{told(place)}</Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}

const SHOWN = 20;

/** Letters that can't be replayed, and why. */
export function Refused({ refused }: { refused: NonNullable<ReplayResult["refused"]> }) {
  if (refused.length === 0) return null;
  return (
    <div>
      <Text size="sm" fw={600}>
        {count(refused.length)} can't be replayed
      </Text>
      <List size="sm">
        {refused.slice(0, SHOWN).map((each) => (
          <List.Item key={each.offset}>
            letter {each.offset}: {each.message}
            {each.hint && (
              <Text span size="sm" c="dimmed">
                {" "}
                ({each.hint})
              </Text>
            )}
          </List.Item>
        ))}
      </List>
      {refused.length > SHOWN && (
        <Text size="sm" c="dimmed">
          and {count(refused.length - SHOWN)} more
        </Text>
      )}
    </div>
  );
}
