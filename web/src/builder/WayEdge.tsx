import { ActionIcon, Text, Tooltip } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import { BaseEdge, EdgeLabelRenderer, type EdgeProps, getBezierPath } from "@xyflow/react";
import classes from "./builder.module.css";
import { useBuilder } from "./context";
import type { CanvasEdge } from "./graph";

/** The way from one part to the next: where a step can be put, and what passes. */
export function WayEdge(props: EdgeProps<CanvasEdge>) {
  const { sourceX, sourceY, targetX, targetY, data } = props;
  const { add, isStale } = useBuilder();
  const [path, middleX, middleY] = getBezierPath(props);
  // Where ways part, the step goes before the fork.
  const toward = Math.abs(targetX - sourceX) > Math.abs(targetY - sourceY) ? [26, 0] : [0, 26];
  const [x, y] = data?.atStart ? [sourceX + toward[0]!, sourceY + toward[1]!] : [middleX, middleY];
  const label = data?.label;
  return (
    <>
      <BaseEdge path={path} className={data?.dashed ? classes.dashed : classes.way} />
      <EdgeLabelRenderer>
        {data?.insertAt !== undefined && !isStale && (
          <div className={classes.onEdge} style={{ transform: at(x, y) }}>
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
        {label && (
          <div
            className={classes.onEdge}
            style={{ transform: at((sourceX + 3 * targetX) / 4, targetY, "-14px") }}
          >
            <Tooltip label={label} multiline maw={360}>
              <Text size="xs" className={classes.condition} tabIndex={0} data-chosen={!data?.dashed}>
                {label}
              </Text>
            </Tooltip>
          </div>
        )}
      </EdgeLabelRenderer>
    </>
  );
}

const at = (x: number, y: number, up = "0px") =>
  `translate(-50%, -50%) translate(${x}px, ${y}px) translateY(${up})`;
