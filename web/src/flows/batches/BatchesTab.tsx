import { SegmentedControl, Stack, Text } from "@mantine/core";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api, body } from "#/api/client";
import type { AnyDocument, Kind } from "#/api/kinds";
import { plural } from "#/components/format";
import { Empty, Loading } from "#/components/Page";
import { Failure } from "#/components/Problems";
import { below, belowKey } from "../api";
import { BatchGrid } from "./BatchGrid";

const MOST = 3000;

const OUTCOMES = [
  { value: "all", label: "All" },
  { value: "failed", label: "Failed" },
];

/** The last batches of a flow and its failed attempts. */
export default function BatchesTab({ kind, document }: { kind: Kind; document: AnyDocument }) {
  const [outcome, setOutcome] = useState("all");
  const found = useQuery({
    queryKey: belowKey(kind, document.id, "batches"),
    queryFn: () => fetchBatches(kind, document.id),
    refetchInterval: 5_000,
    placeholderData: keepPreviousData,
  });
  if (found.error && !found.data) return <Failure error={found.error} title="Could not load the batches" />;
  if (!found.data) return <Loading what="Loading the batches" />;
  const { batches } = found.data;
  const shown = outcome === "all" ? batches : batches.filter((each) => each.outcome === outcome);
  if (batches.length === 0) {
    return (
      <Empty title="No batches yet">
        Each batch is listed here with its events, duration and outcome once the flow has processed one.
      </Empty>
    );
  }
  return (
    <Stack gap="xs">
      <SegmentedControl
        size="xs"
        aria-label="Outcome"
        data={OUTCOMES}
        value={outcome}
        onChange={setOutcome}
        style={{ alignSelf: "flex-start" }}
      />
      <BatchGrid batches={shown} />
      <Text size="xs" c="dimmed">
        {plural(shown.length, outcome === "all" ? "batch" : "failed attempt")}; about {MOST.toLocaleString()}{" "}
        are kept.
      </Text>
    </Stack>
  );
}

function fetchBatches(kind: Kind, id: string) {
  const params = { path: { name: id }, query: { limit: MOST } };
  return body(api.GET(below(kind, "/pipelines/{name}/batches"), { params }));
}
