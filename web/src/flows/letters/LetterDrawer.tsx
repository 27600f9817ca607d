import { Anchor, Badge, Code, Drawer, Group, Stack, Text } from "@mantine/core";
import { Link } from "react-router";
import type { Kind } from "#/api/kinds";
import { moment } from "#/components/format";
import { Loading } from "#/components/Page";
import { Failure, Problems } from "#/components/Problems";
import { canReplay, type Letter } from "../api";
import { type Choice, useLetter } from "./api";
import { LetterEditor } from "./LetterEditor";
import { LetterStateBadge } from "./LetterStateBadge";

interface Props {
  kind: Kind;
  id: string;
  /** Null: no letter is open. */
  offset: number | null;
  onClose: () => void;
  onReplay: (choice: Choice) => void;
}

/** One letter: why it is one, where it comes from, its event, which can be edited, and what was tried. */
export function LetterDrawer({ kind, id, offset, onClose, onReplay }: Props) {
  return (
    <Drawer
      opened={offset !== null}
      onClose={onClose}
      position="right"
      size="xl"
      title={`Dead letter ${offset ?? ""}`}
      closeButtonProps={{ "aria-label": "Close" }}
    >
      {offset !== null && <Body key={offset} {...{ kind, id, offset, onReplay }} />}
    </Drawer>
  );
}

function Body({ kind, id, offset, onReplay }: Omit<Props, "onClose" | "offset"> & { offset: number }) {
  const { data: letter, error } = useLetter(kind, id, offset);
  if (error) return <Failure error={error} title="Could not load the dead letter" />;
  if (!letter) return <Loading what="Loading the dead letter" />;
  return (
    <Stack>
      <Group gap="xs">
        <LetterStateBadge letter={letter} />
        {letter.edited && (
          <Badge variant="outline" color="gray" tt="none">
            edited
          </Badge>
        )}
        <Badge variant="default" tt="none">
          {letter.code}
        </Badge>
      </Group>
      <Text style={{ overflowWrap: "anywhere" }}>{letter.reason ?? "No reason was given."}</Text>
      {letter.obstacle && letter.state === "new" && (
        <Problems
          problems={[letter.obstacle]}
          title={
            letter.in_input
              ? "This letter can't be replayed. Its original event can be sent to the input"
              : "This letter can't be replayed"
          }
        />
      )}
      <Lineage kind={kind} letter={letter} />
      <LetterEditor
        key={JSON.stringify(letter.event)}
        kind={kind}
        id={id}
        letter={letter}
        onReplay={() => onReplay({ offsets: [letter.offset] })}
      />
      {letter.replays.length > 0 && <Replays letter={letter} />}
    </Stack>
  );
}

function Lineage({ kind, letter }: { kind: Kind; letter: Letter }) {
  const headers = Object.entries(letter.headers);
  return (
    <Stack gap={4} fz="sm">
      <Text size="sm" c="dimmed">
        stored {moment(letter.time)} at <b>{letter.step}</b>, attempt {letter.attempt}
        {letter.revision !== null && `, revision ${letter.revision}`}
        {letter.replay_of !== null && `, from the replay of letter ${letter.replay_of}`}
      </Text>
      {letter.source_offset !== null && (
        <Text size="sm">
          Event at offset {letter.source_offset} of the input.{" "}
          {canReplay(kind) && (
            <Anchor
              component={Link}
              to={`?tab=story&offset=${letter.source_offset}`}
              size="sm"
              underline="always"
            >
              Trace event
            </Anchor>
          )}
        </Text>
      )}
      {letter.key !== null && (
        <Text size="sm">
          Key <Code>{typeof letter.key === "string" ? letter.key : JSON.stringify(letter.key)}</Code>
        </Text>
      )}
      {headers.length > 0 && (
        <Group gap="xs">
          {headers.map(([name, value]) => (
            <Code key={name}>
              {name}: {typeof value === "string" ? value : JSON.stringify(value)}
            </Code>
          ))}
        </Group>
      )}
    </Stack>
  );
}

const OUTCOMES: Record<Letter["replays"][number]["outcome"], string> = {
  delivered: "delivered to all sinks",
  failed_again: "failed again; kept as a new letter",
  sent: "original event sent to the input",
};

function Replays({ letter }: { letter: Letter }) {
  return (
    <div>
      <Text size="sm" fw={600}>
        Replays
      </Text>
      {letter.replays.map((each) => (
        <Text key={`${each.request} ${each.at}`} size="sm" c="dimmed">
          {moment(each.at)}: {OUTCOMES[each.outcome]}
        </Text>
      ))}
    </div>
  );
}
