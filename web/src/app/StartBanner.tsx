import { Alert, Code, Group, Loader, Stack, Text, ThemeIcon } from "@mantine/core";
import { useInterval } from "@mantine/hooks";
import { IconAlertTriangle, IconCheck, IconCircle } from "@tabler/icons-react";
import { useEffect, useState } from "react";
import { type Overview, usePulse, type WorkerStart } from "#/api/overview";

/** Shows how far the start is, until a worker is ready. */
export function StartBanner() {
  const { overview } = usePulse();
  const start = overview === null ? undefined : startOf(overview);
  return start ? <Start start={start} /> : null;
}

/** The start to show: that of the worker that is furthest; none once any worker can run flows. */
export function startOf({ workers, startup }: Overview): WorkerStart | undefined {
  if (workers.some((worker) => worker.alive && worker.state === "ready")) return undefined;
  const order: WorkerStart["phase"][] = ["ready", "connecting", "starting_spark", "failed"];
  return [...startup].sort((a, b) => order.indexOf(a.phase) - order.indexOf(b.phase))[0];
}

export function Start({ start }: { start: WorkerStart }) {
  const hasSpark = start.phase === "connecting" || start.phase === "ready";
  const seconds = useSecondsSince(start.since);
  if (start.error !== null) return <Failure start={start} />;
  return (
    <Alert variant="light" mb="md" role="status" title="Penstock is starting">
      <Stack gap="xs">
        <Group component="ul" gap="lg" p={0} m={0} aria-label="Start-up">
          <Step state="done" label="Server ready" />
          <Step
            state={hasSpark ? "done" : "now"}
            label={hasSpark ? "Spark started" : "Starting Spark…"}
            seconds={seconds}
          />
          <Step
            state={hasSpark ? "now" : "later"}
            label={hasSpark ? "Connecting the worker…" : "Worker ready"}
            seconds={seconds}
          />
        </Group>
        <Text size="sm">
          You can browse everything now. Running flows, saving, testing and queries become available when the
          worker is ready, usually within 20 seconds.
        </Text>
      </Stack>
    </Alert>
  );
}

function Failure({ start }: { start: WorkerStart }) {
  return (
    <Alert
      color="red"
      variant="light"
      mb="md"
      icon={<IconAlertTriangle />}
      title="The worker failed to start"
    >
      <Stack gap="xs">
        <Text size="sm">
          Flows, saves, tests and queries need a worker. It is started again automatically;{" "}
          {start.failures === 1 ? "1 attempt has" : `${start.failures} attempts have`} failed. The last one
          ended with:
        </Text>
        <Code block>{start.error}</Code>
        <Text size="sm">
          Its log is <Code>{start.log}</Code>.
        </Text>
      </Stack>
    </Alert>
  );
}

const WORDS = { done: "done", now: "in progress", later: "not yet" };

interface StepProps {
  state: keyof typeof WORDS;
  label: string;
  /** Since the process was started; shown while the step is in progress. */
  seconds?: number;
}

function Step({ state, label, seconds }: StepProps) {
  return (
    <Group component="li" gap={6} wrap="nowrap" className="step" aria-label={`${label}: ${WORDS[state]}`}>
      {state === "now" ? (
        <Loader size={16} aria-hidden />
      ) : (
        <ThemeIcon size={18} radius="xl" variant={state === "done" ? "filled" : "transparent"} aria-hidden>
          {state === "done" ? <IconCheck size={12} stroke={3} /> : <IconCircle size={16} stroke={1.6} />}
        </ThemeIcon>
      )}
      <Text size="sm" fw={state === "now" ? 600 : undefined} c={state === "later" ? "dimmed" : undefined}>
        {label}
      </Text>
      {state === "now" && (
        // For those who watch: a screen reader would read out every second.
        <Text size="sm" c="dimmed" aria-hidden>
          {seconds} s
        </Text>
      )}
    </Group>
  );
}

function useSecondsSince(since: string): number {
  const count = () => Math.max(0, Math.round((Date.now() - Date.parse(since)) / 1000));
  const [seconds, setSeconds] = useState(count);
  const { start, stop } = useInterval(() => setSeconds(count()), 1000);
  useEffect(() => {
    start();
    return stop;
  }, [start, stop]);
  return seconds;
}
