import { ActionIcon, Tooltip } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import { BaseEdge, EdgeLabelRenderer, type EdgeProps, getBezierPath } from "@xyflow/react";
import { useContext } from "react";
import classes from "./builder.module.css";
import { useBuilder } from "./context";
import type { CanvasEdge } from "./graph";
import { VerticalContext } from "./Sides";

/** How far behind a part a step is put before its ways fork. */
const FORK = 20;

/** The way from one part to the next, where a step can be put. */
export function WayEdge(props: EdgeProps<CanvasEdge>) {
  const { sourceX, sourceY, data } = props;
  const { add, isStale } = useBuilder();
  const isVertical = useContext(VerticalContext);
  const [path, middleX, middleY] = getBezierPath(props);
  const x = data?.isFork ? sourceX + (isVertical ? 0 : FORK) : middleX;
  const y = data?.isFork ? sourceY + (isVertical ? FORK : 0) : middleY;
  return (
    <>
      <BaseEdge path={path} className={data?.isDashed ? classes.dashed : classes.way} />
      {data?.insertAt !== undefined && !isStale && (
        <EdgeLabelRenderer>
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
        </EdgeLabelRenderer>
      )}
    </>
  );
}
