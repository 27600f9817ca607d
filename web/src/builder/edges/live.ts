import { useQuery } from "@tanstack/react-query";
import { createContext, useEffect, useState } from "react";
import { one } from "#/api/documents";
import { kindAt, type Place } from "#/api/kinds";
import type { Sample } from "./passing";

const EVERY_MS = 2_000;
const MOST = 31;

/** What the flow that is edited has counted, over the last minute; empty unless it runs. */
export const LiveContext = createContext<readonly Sample[]>([]);

/** Looks at the counters of a running flow every other second. */
export function useSamples(place: Place, id: string | null): readonly Sample[] {
  const [samples, setSamples] = useState<readonly Sample[]>([]);
  const { data, dataUpdatedAt } = useQuery({
    queryKey: ["builder", "counters", place, id],
    queryFn: () => one(kindAt(place)!, id!),
    enabled: id !== null,
    refetchInterval: ({ state }) => (state.data?.status === "active" ? EVERY_MS : 5 * EVERY_MS),
    gcTime: 0,
  });
  useEffect(() => {
    if (data?.status !== "active" || !data.ops) return setSamples([]);
    setSamples((before) => [...before, { at: dataUpdatedAt, ops: data.ops }].slice(-MOST));
  }, [data, dataUpdatedAt]);
  return samples;
}
