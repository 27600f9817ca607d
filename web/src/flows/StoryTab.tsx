import { Button, Group, NumberInput, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { useSearchParams } from "react-router";
import { api, body } from "#/api/client";
import { type AnyDocument, type Kind, keyOf } from "#/api/kinds";
import { useInputStream } from "#/api/topology";
import { Empty, Loading } from "#/components/Page";
import { Failure } from "#/components/Problems";
import { below, belowKey } from "./api";
import { RecentEvents } from "./RecentEvents";
import { StoryView } from "./StoryView";

/** What becomes of one event: chosen by its offset, also by `?offset=` in the address. */
export default function StoryTab({ kind, document }: { kind: Kind; document: AnyDocument }) {
  const [search, setSearch] = useSearchParams();
  const given = search.get("offset");
  const offset = given !== null && /^\d+$/.test(given) ? Number(given) : null;
  const stream = useInputStream(keyOf(document));
  const [typed, setTyped] = useState<string | number>(offset ?? "");
  const go = (to: number) => {
    setTyped(to);
    setSearch({ tab: "story", offset: String(to) });
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (typed !== "") go(Number(typed));
  };
  if (stream === null) {
    return (
      <Empty title="This flow reads no stream">
        Its events can't be read again, so they can't be traced. Run a similar event in a test run.
      </Empty>
    );
  }
  return (
    <Stack>
      <form onSubmit={submit}>
        <Group align="flex-end" gap="xs">
          <NumberInput
            label="Offset of the event"
            description="In the source stream"
            min={0}
            allowDecimal={false}
            value={typed}
            onChange={setTyped}
            w={220}
          />
          <Button type="submit" disabled={typed === ""}>
            Trace event
          </Button>
          {offset !== null && (
            <>
              <Button variant="default" disabled={offset === 0} onClick={() => go(offset - 1)}>
                Previous
              </Button>
              <Button variant="default" onClick={() => go(offset + 1)}>
                Next
              </Button>
            </>
          )}
        </Group>
      </form>
      {offset !== null && <Told kind={kind} document={document} offset={offset} />}
      {stream && (
        <>
          {offset === null && (
            <Text size="sm" c="dimmed">
              Pick an event, or enter its offset, to see the output of each step for it and its delivery
              status at each sink. Nothing is written.
            </Text>
          )}
          <RecentEvents stream={stream} onPick={go} />
        </>
      )}
    </Stack>
  );
}

function Told({ kind, document, offset }: { kind: Kind; document: AnyDocument; offset: number }) {
  const story = useQuery({
    queryKey: belowKey(kind, document.id, "story", document.revision, offset),
    queryFn: () => tell(kind, document.id, offset),
    retry: false,
  });
  if (story.error) return <Failure error={story.error} title="The event can't be traced" />;
  if (!story.data) {
    return (
      <Stack gap={0} align="center">
        <Loading what="Tracing the event" />
        <Text size="sm" c="dimmed">
          The event goes through the steps once more; nothing is written.
        </Text>
      </Stack>
    );
  }
  return <StoryView document={document} story={story.data} />;
}

function tell(kind: Kind, id: string, offset: number) {
  const params = { path: { name: id }, query: { offset } };
  return body(api.GET(below(kind, "/pipelines/{name}/story"), { params }));
}
