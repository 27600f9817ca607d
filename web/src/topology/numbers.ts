import type { FlowPulse, StreamPulse } from "#/api/overview";
import type { TopologyNode } from "#/api/topology";
import { count, plural, rate } from "#/components/format";

/** What a node says about itself beside its name and its status. */
export function detailOf(
  node: TopologyNode,
  flow?: FlowPulse,
  stream?: StreamPulse,
  inside?: string,
): string {
  const parts: string[] = [];
  if (flow !== undefined) {
    if (flow.status === "active") parts.push(rate(flow.in_rate));
    if (flow.lag_events) parts.push(`${count(flow.lag_events)} waiting`);
  } else if (stream !== undefined) {
    parts.push(rate(stream.in_rate));
    if (stream.full) parts.push("full");
    parts.push(stream.lag_events ? `${count(stream.lag_events)} waiting` : plural(stream.events, "event"));
  } else {
    parts.push(node.type && node.type !== node.name ? node.type : node.kind.toLowerCase());
  }
  if (inside) parts.push(inside);
  return parts.join(" · ");
}
