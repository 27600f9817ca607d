import { Handle, Position } from "@xyflow/react";
import { createContext, type ReactNode, useContext } from "react";

/** Whether the canvas runs from top to bottom. */
export const VerticalContext = createContext(false);

/** Where the ways of a node begin and end. */
export function Sides({
  in: hasIn,
  out: hasOut,
  children,
}: {
  in: boolean;
  out: boolean;
  children: ReactNode;
}) {
  const isVertical = useContext(VerticalContext);
  return (
    <>
      {hasIn && (
        <Handle type="target" position={isVertical ? Position.Top : Position.Left} isConnectable={false} />
      )}
      {children}
      {hasOut && (
        <Handle
          type="source"
          position={isVertical ? Position.Bottom : Position.Right}
          isConnectable={false}
        />
      )}
    </>
  );
}
