import { UnstyledButton } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import type { NodeProps } from "@xyflow/react";
import classes from "./builder.module.css";
import { useBuilder } from "./context";
import type { BlankNode as Blank } from "./graph";
import { Sides } from "./Sides";

/** The place of an end that is still to be chosen. */
export function BlankNode({ data }: NodeProps<Blank>) {
  const { add, isStale } = useBuilder();
  return (
    <Sides in={data.role === "sink"} out={data.role === "source"}>
      <UnstyledButton className={classes.blank} disabled={isStale} onClick={() => add({ role: data.role })}>
        <IconPlus size={16} aria-hidden /> {data.label}
      </UnstyledButton>
    </Sides>
  );
}
