import { keepPreviousData, type UseQueryResult, useQuery } from "@tanstack/react-query";
import { api, body, type Schemas } from "./client";

export type Topology = Schemas["Topology"];
export type TopologyNode = Schemas["Node"];
export type TopologyEdge = Schemas["Edge"];

export const fetchTopology = (): Promise<Topology> => body(api.GET("/topology"));

/** The registry as a graph, asked for again when a document changes. */
export function useTopology(): UseQueryResult<Topology> {
  return useQuery({ queryKey: ["topology"], queryFn: fetchTopology, placeholderData: keepPreviousData });
}

const STREAM = "Stream/";

/** The id of the stream that a flow reads; null if it reads none. */
export const inputStream = ({ edges }: Topology, key: string): string | null =>
  edges
    .find(
      ({ from, to, flow, kind }) => kind === "data" && to === key && flow === key && from.startsWith(STREAM),
    )
    ?.from.slice(STREAM.length) ?? null;

/** The id of the stream that a flow reads; null if it reads none, undefined while that is not known. */
export function useInputStream(key: string): string | null | undefined {
  const { data } = useTopology();
  return data && inputStream(data, key);
}

/** The stream that holds the events of an edge, or that its flow has read them from; null if there is none. */
export function streamOfEdge(graph: Topology, { from, to, flow }: TopologyEdge): string | null {
  const end = [to, from].find((key) => key.startsWith(STREAM));
  return end?.slice(STREAM.length) ?? inputStream(graph, flow);
}
