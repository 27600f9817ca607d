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
