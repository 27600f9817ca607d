import { ActionIcon, Tooltip, VisuallyHidden } from "@mantine/core";
import { IconAlertTriangle, IconFocusCentered } from "@tabler/icons-react";
import { Handle, type Node, type NodeProps, Position } from "@xyflow/react";
import { memo } from "react";
import { Link } from "react-router";
import { pageOfKey } from "#/api/kinds";
import { useFlowPulse, useStreamPulse } from "#/api/overview";
import type { TopologyNode } from "#/api/topology";
import { useShared } from "./GraphContext";
import { KIND_ICONS } from "./kindIcons";
import { NodeStatus } from "./NodeStatus";
import { detailOf } from "./numbers";
import classes from "./topology.module.css";

export type DocumentNodeType = Node<{ node: TopologyNode }, "document">;

/** A document in the graph, or an end inside one: a link to its page, with how it is. */
export const DocumentNode = memo(function DocumentNode({ data: { node } }: NodeProps<DocumentNodeType>) {
  const { lit, found, troubles, insides, onlyConnected } = useShared();
  const flow = useFlowPulse(node.key);
  const stream = useStreamPulse(node.key);
  const Icon = KIND_ICONS[node.kind];
  const status = flow?.status ?? node.status;
  const stalled = status === "active" && flow?.phase === "stalled";
  const troubled = troubles.has(node.key);
  const detail = detailOf(node, flow, stream, insides.get(node.key));
  return (
    <div
      className={classes.node}
      data-kind={node.kind}
      data-inline={node.inline || undefined}
      data-status={(stalled ? "stalled" : status) ?? undefined}
      data-troubled={troubled || undefined}
      data-dim={(lit !== null && !lit.has(node.key)) || undefined}
      data-found={found === node.key || undefined}
    >
      <Handle type="target" position={Position.Left} isConnectable={false} className={classes.handle} />
      <Link
        to={pageOfKey(node.owner ?? node.key)}
        className={classes.link}
        data-key={node.key}
        title={node.name}
      >
        <Icon size={20} stroke={1.6} className={classes.icon} />
        <span className={classes.words}>
          <span className={classes.name}>
            {node.name}
            <VisuallyHidden>, {node.inline ? `${node.kind} of ${node.owner}` : node.kind}. </VisuallyHidden>
          </span>
          <span className={classes.detail}>
            {troubled && <IconAlertTriangle size={13} className={classes.alarm} />}
            <NodeStatus status={status} phase={flow?.phase} />
            <span className={classes.text}>{detail}</span>
          </span>
        </span>
      </Link>
      <Tooltip label="Show only connected documents" withinPortal>
        <ActionIcon
          className={classes.only}
          variant="default"
          size="sm"
          aria-label={`Show only documents connected to ${node.name}`}
          onClick={() => onlyConnected(node.key)}
        >
          <IconFocusCentered size={14} />
        </ActionIcon>
      </Tooltip>
      <Handle type="source" position={Position.Right} isConnectable={false} className={classes.handle} />
    </div>
  );
});
