import { Stack, Text, Title } from "@mantine/core";
import type { ReactNode } from "react";
import type { AnyDocument, Kind } from "#/api/kinds";
import { FlowCharts } from "./FlowCharts";
import { FlowNumbers } from "./FlowNumbers";
import { FlowStrip } from "./FlowStrip";
import { LastErrors } from "./LastErrors";
import { ReplayList } from "./ReplayList";
import { SinkList } from "./SinkList";

/** How a flow is right now: its numbers, its parts, its sinks, and what went wrong last. */
export function OverviewTab({ kind, document }: { kind: Kind; document: AnyDocument }) {
  return (
    <Stack gap="lg">
      <FlowNumbers document={document} />
      <FlowCharts kind={kind} document={document} />
      <Section title="Steps" about="Totals over all runs.">
        <FlowStrip kind={kind} document={document} />
      </Section>
      <Section title="Sinks" about="Position and missed batches of each sink.">
        <SinkList kind={kind} id={document.id} />
      </Section>
      <LastErrors document={document} />
      <ReplayList kind={kind} id={document.id} />
    </Stack>
  );
}

function Section({ title, about, children }: { title: string; about: string; children: ReactNode }) {
  return (
    <Stack gap="xs" component="section" aria-label={title}>
      <div>
        <Title order={2} size="h4">
          {title}
        </Title>
        <Text size="sm" c="dimmed">
          {about}
        </Text>
      </div>
      {children}
    </Stack>
  );
}
