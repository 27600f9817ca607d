import { Anchor, Group, Paper, Stack, Text } from "@mantine/core";
import { IconArrowRight } from "@tabler/icons-react";
import type { ReactNode } from "react";
import { Link } from "react-router";
import { type AnyDocument, type Kind, keyOf, pageOf } from "#/api/kinds";
import { useFlowPulse } from "#/api/overview";
import { count, duration, rate } from "#/components/format";
import { useSinks } from "./api";
import classes from "./FlowStrip.module.css";
import { type FlowStep, inputOf, type PartLink, sinkLink, stepsOf } from "./parts";

/** A flow from its input over its steps to its sinks, with what each part has counted. */
export function FlowStrip({ kind, document }: { kind: Kind; document: AnyDocument }) {
  const pulse = useFlowPulse(keyOf(document));
  const sinks = useSinks(kind, document.id);
  const input = inputOf(document);
  const steps = stepsOf(document);
  const read = pulse?.input_events ?? document.ops?.input_events;
  const shared = steps.some((each) => each.counts?.shared);
  return (
    <Stack gap="xs">
      <ol className={classes.strip}>
        <Part name={input.label} about={input.type ?? ""} to={pageOfLink(input.link)}>
          <Counts
            rows={[
              ["read", count(read)],
              ["now", rate(pulse?.in_rate)],
            ]}
          />
        </Part>
        {steps.map((step) => (
          <Part key={step.id} name={step.id} about={step.type ?? "step"}>
            <StepCounters step={step} />
          </Part>
        ))}
        <li className={classes.sinks}>
          {sinks.data?.map((sink) => (
            <Card
              key={sink.id}
              name={sink.id}
              about={`${sink.type} sink`}
              to={pageOfLink(sinkLink(document, sink.id))}
            >
              <Counts
                rows={[
                  ["delivered", count(document.ops?.sinks?.[sink.id]?.events)],
                  ["now", rate(pulse?.sinks.find((each) => each.id === sink.id)?.rate)],
                ]}
              />
            </Card>
          ))}
        </li>
      </ol>
      {shared && (
        <Text size="xs" c="dimmed">
          * Spark runs these steps together in one pass: each of them shows the time of all, so do not add it
          up.
        </Text>
      )}
    </Stack>
  );
}

const pageOfLink = (link: PartLink | null) => (link ? pageOf(link.kind, link.id) : undefined);

interface CardProps {
  name: string;
  about: string;
  to?: string;
  children: ReactNode;
}

/** A part with an arrow to the next. */
function Part(props: CardProps) {
  return (
    <li className={classes.part}>
      <Card {...props} />
      <IconArrowRight size={16} className={classes.arrow} aria-hidden />
    </li>
  );
}

function Card({ name, about, to, children }: CardProps) {
  return (
    <Paper withBorder p="xs" className={classes.card}>
      <Group gap={6} justify="space-between" wrap="nowrap" mb={4}>
        {to ? (
          <Anchor component={Link} to={to} size="sm" fw={600} truncate>
            {name}
          </Anchor>
        ) : (
          <Text size="sm" fw={600} truncate title={name}>
            {name}
          </Text>
        )}
        <Text size="xs" c="dimmed" style={{ whiteSpace: "nowrap" }}>
          {about}
        </Text>
      </Group>
      {children}
    </Paper>
  );
}

function StepCounters({ step: { counts } }: { step: FlowStep }) {
  if (!counts) {
    return (
      <Text size="xs" c="dimmed">
        no data yet
      </Text>
    );
  }
  return (
    <Counts
      rows={[
        ["in", count(counts.in)],
        ["out", count(counts.out)],
        ["dropped", count(counts.dropped)],
        ["failed", count(counts.errors), counts.errors > 0],
        ["time", `${duration(counts.ms)}${counts.shared ? " *" : ""}`],
      ]}
    />
  );
}

function Counts({ rows }: { rows: [string, string, boolean?][] }) {
  return (
    <dl className={classes.counts}>
      {rows.map(([name, value, bad]) => (
        <div key={name} style={{ display: "contents" }}>
          <dt>{name}</dt>
          <dd className={bad ? classes.bad : undefined}>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
