import { SimpleGrid, Skeleton, Text } from "@mantine/core";
import type { Kind } from "#/api/kinds";
import { Failure } from "#/components/Problems";
import { useSinks } from "./api";
import { SinkCard } from "./SinkCard";

/** The sinks of a flow, one by one. */
export function SinkList({ kind, id }: { kind: Kind; id: string }) {
  const { data, error } = useSinks(kind, id);
  if (error && !data) return <Failure error={error} title="Could not load the sinks" />;
  if (!data) return <Skeleton h={120} />;
  if (data.length === 0) {
    return (
      <Text size="sm" c="dimmed">
        No valid sinks. Fix the document first.
      </Text>
    );
  }
  return (
    <SimpleGrid cols={{ base: 1, md: 2, xl: 3 }}>
      {data.map((sink) => (
        <SinkCard key={sink.id} kind={kind} id={id} sink={sink} />
      ))}
    </SimpleGrid>
  );
}
