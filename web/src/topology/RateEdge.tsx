import { IconAlertOctagonFilled, IconAlertTriangle } from "@tabler/icons-react";
import { BaseEdge, type Edge, EdgeLabelRenderer, type EdgeProps, getBezierPath } from "@xyflow/react";
import { memo } from "react";
import { useFlowPulse, useStreamPulse } from "#/api/overview";
import type { TopologyEdge } from "#/api/topology";
import { rate } from "#/components/format";
import { useShared } from "./GraphContext";
import { Sparkline } from "./Sparkline";
import { EDGE_STATES, rateOf, stateOf, thickness } from "./states";
import classes from "./topology.module.css";
import { useTrail } from "./trails";

export type RateEdgeType = Edge<{ edge: TopologyEdge }, "rate">;

/** A way that events take: as thick as many events do, with a sign where they cannot. */
export const RateEdge = memo(function RateEdge({ id, data, ...ends }: EdgeProps<RateEdgeType>) {
  const edge = data!.edge;
  const { lit, troubles, onEdge } = useShared();
  const trail = useTrail(edge);
  const flow = useFlowPulse(edge.flow);
  const own = useStreamPulse(edge.flow);
  const into = useStreamPulse(edge.to);
  const [path, x, y] = getBezierPath(ends);
  const perSecond = rateOf(edge, { flow, own });
  const growing = troubles.get(edge.flow)?.includes("lag_growing") ?? false;
  const state = stateOf(edge, { flow, into, own }, growing);
  const dim = lit !== null && !(lit.has(edge.from) && lit.has(edge.to));
  const text = perSecond !== null && perSecond >= 0.05 ? rate(perSecond) : "";
  const signs = { "data-state": state, "data-kind": edge.kind, "data-dim": dim || undefined };
  return (
    <>
      <g className={classes.edge} {...signs}>
        <BaseEdge id={id} path={path} style={{ strokeWidth: thickness(perSecond) }} interactionWidth={16} />
      </g>
      {(text !== "" || state !== "well") && (
        <EdgeLabelRenderer>
          <button
            type="button"
            className={classes.rate}
            {...signs}
            title={state === "well" ? "Show the last events" : EDGE_STATES[state]}
            aria-label={`Events from ${edge.from} to ${edge.to}: ${text || "0/s"}`}
            onClick={() => onEdge(edge)}
            style={{ transform: `translate(-50%, -50%) translate(${x}px, ${y}px)` }}
          >
            {state === "failed" && <IconAlertOctagonFilled size={12} aria-label={EDGE_STATES.failed} />}
            {state !== "failed" && state !== "well" && (
              <IconAlertTriangle size={12} aria-label={EDGE_STATES[state]} />
            )}
            {text}
            <Sparkline values={trail} />
          </button>
        </EdgeLabelRenderer>
      )}
    </>
  );
});
