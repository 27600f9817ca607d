import { Badge, Code, Stack, Text } from "@mantine/core";
import { Allowed } from "#/access/Allowed";
import { usePulse } from "#/api/overview";
import { Empty, Loading, Page } from "#/components/Page";
import { WorkerTable } from "./WorkerTable";

/** The processes that run flows. */
export default function WorkersPage() {
  const { overview, flows } = usePulse();
  return (
    <Page
      title="Workers"
      beside={overview && <Badge variant="default">{overview.workers.length}</Badge>}
      about="A worker is a process with its own Spark driver. Flows are distributed among the workers. If a worker is lost, its flows move to the others."
    >
      {overview === null ? (
        <Loading what="Loading workers" />
      ) : overview.workers.length === 0 ? (
        <NoWorkers starting={overview.startup.length > 0} />
      ) : (
        <>
          <WorkerTable workers={overview.workers} flows={flows} />
          <Allowed needs="admin">
            <Text size="sm" c="dimmed">
              <Code>penstock worker</Code> starts another one on this machine. On another machine, use{" "}
              <Code>penstock worker --server URL --token TOKEN</Code>; <Code>penstock worker token</Code>{" "}
              creates a token here.
            </Text>
          </Allowed>
        </>
      )}
    </Page>
  );
}

function NoWorkers({ starting }: { starting: boolean }) {
  if (starting) {
    return <Empty title="The worker is starting">It is listed here as soon as it is ready.</Empty>;
  }
  return (
    <Empty title="No worker is running">
      <Stack gap="xs" align="center">
        <span>
          <Code>penstock up</Code> starts a worker together with the server. Start another one with
        </span>
        <Code block>penstock worker</Code>
        <span>
          with the same settings as the server. If it exits, its log in <Code>logs/</Code> in the home
          directory of Penstock says why.
        </span>
      </Stack>
    </Empty>
  );
}
