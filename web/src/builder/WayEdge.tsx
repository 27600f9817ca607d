import { ActionIcon, Tooltip } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import { BaseEdge, EdgeLabelRenderer, type EdgeProps, getBezierPath } from "@xyflow/react";
import { useContext } from "react";
import classes from "./builder.module.css";
import { useBuilder } from "./context";
import { EdgeChip } from "./edges/EdgeChip";
import type { CanvasEdge } from "./graph";
import { VerticalContext } from "./Sides";

/** How far behind a part a step is put before its ways fork. */
const FORK = 20;
/** How far the chip of an edge is from its line, and from the sink if the edge is one of several. */
const BESIDE = 16;
const BEFORE = 46;

/** The way from one part to the next: what passes there, and where a step can be put. */
export function WayEdge(props: EdgeProps<CanvasEdge>) {
  const { sourceX, sourceY, targetX, targetY, data } = props;
  const { add, isStale } = useBuilder();
  const isVertical = useContext(VerticalContext);
  const [path, middleX, middleY] = getBezierPath(props);
  const x = data?.isFork ? sourceX + (isVertical ? 0 : FORK) : middleX;
  const y = data?.isFork ? sourceY + (isVertical ? FORK : 0) : middleY;
  const isOneOfMany = sourceX !== targetX && sourceY !== targetY;
  const chip = isVertical
    ? `translate(${BESIDE}px, -50%) translate(${isOneOfMany ? targetX : middleX}px, ${isOneOfMany ? targetY - BEFORE / 2 : middleY}px)`
    : `translate(-50%, ${BESIDE}px) translate(${isOneOfMany ? targetX - BEFORE : middleX}px, ${isOneOfMany ? targetY - BESIDE : middleY}px)`;
  return (
    <>
      <BaseEdge path={path} className={data?.isDashed ? classes.dashed : classes.way} />
      <EdgeLabelRenderer>
        {data?.insertAt !== undefined && !isStale && (
          <div
            className={classes.onEdge}
            style={{ transform: `translate(-50%, -50%) translate(${x}px, ${y}px)` }}
          >
            <Tooltip label={`Add a step after ${data.after}`}>
              <ActionIcon
                size="sm"
                radius="xl"
                variant="default"
                aria-label={`Add a step after ${data.after}`}
                onClick={() => add({ role: "processor", index: data.insertAt! })}
              >
                <IconPlus size={14} />
              </ActionIcon>
            </Tooltip>
          </div>
        )}
        {data?.spot && !isStale && (
          <div className={classes.onEdge} style={{ transform: chip }}>
            <EdgeChip spot={data.spot} />
          </div>
        )}
      </EdgeLabelRenderer>
    </>
  );
}
