import { Group, Paper, SimpleGrid, Stack } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useDeferredValue, useState } from "react";
import { type Pulse, usePulse } from "#/api/overview";
import { fetchTopology } from "#/api/topology";
import { Loading, Page } from "#/components/Page";
import { RangePicker } from "#/components/RangePicker";
import type { TimeRange } from "#/components/timeRange";
import { AttentionList } from "./AttentionList";
import { FirstSteps } from "./FirstSteps";
import classes from "./overview.module.css";
import { StatusTable } from "./StatusTable";
import { Totals } from "./Totals";
import { LagTrend, LettersTrend, RateTrend } from "./Trends";

/** How everything is: what needs attention first, then the numbers. */
export default function OverviewPage() {
  const pulse = useDeferredValue(usePulse());
  const isEmpty = useIsEmpty(pulse);
  return (
    <Page title="Overview">
      {pulse.overview === null || isEmpty === undefined ? (
        <Loading what="Loading the overview" />
      ) : (
        <Stack gap="md">
          {isEmpty ? <FirstSteps /> : <AttentionList pulse={pulse} />}
          <Totals pulse={pulse} />
          {!isEmpty && <Numbers pulse={pulse} />}
        </Stack>
      )}
    </Page>
  );
}

function Numbers({ pulse }: { pulse: Pulse }) {
  const [range, setRange] = useState<TimeRange>({ minutes: 15 });
  const times = { range, onRange: setRange };
  return (
    <>
      <Group justify="flex-end">
        <RangePicker range={range} onChange={setRange} />
      </Group>
      <div className={classes.wide}>
        <Paper withBorder p="md">
          <RateTrend {...times} />
        </Paper>
        <Paper withBorder p="md">
          <StatusTable flows={pulse.flows} />
        </Paper>
      </div>
      <SimpleGrid cols={{ base: 1, md: 2 }}>
        <Paper withBorder p="md">
          <LagTrend {...times} />
        </Paper>
        <Paper withBorder p="md">
          <LettersTrend {...times} />
        </Paper>
      </SimpleGrid>
    </>
  );
}

/** Whether nothing is registered; undefined while that is not known. */
function useIsEmpty({ overview, flows, streams }: Pulse): boolean | undefined {
  const isQuiet = overview !== null && flows.size === 0 && streams.size === 0;
  // What neither runs nor is a stream has no pulse: a source or sink that only pipelines refer to.
  const { data } = useQuery({ queryKey: ["topology"], queryFn: fetchTopology, enabled: isQuiet });
  if (overview === null) return undefined;
  return isQuiet ? data && data.nodes.length === 0 : false;
}
