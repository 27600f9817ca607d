import { ActionIcon, Group, Text, Tooltip } from "@mantine/core";
import { useLocalStorage } from "@mantine/hooks";
import { IconArrowsMaximize, IconArrowsMinimize, IconX } from "@tabler/icons-react";
import { type KeyboardEvent, type PointerEvent, type ReactNode, useRef } from "react";
import classes from "./builder.module.css";

const SMALLEST = 200;
const USUAL = 380;
const STEP = 40;

/** Beside the test panel fit the headers (136 px), 120 px of the canvas, and some problems. */
const OTHERS = 380;
const largest = () => Math.max(SMALLEST, window.innerHeight - OTHERS);

/** The tests below the canvas: as high as one likes, by the mouse or by the arrow keys. */
export function TestDock({ onClose, children }: { onClose: () => void; children: ReactNode }) {
  const [wanted, setHeight] = useLocalStorage({ key: "penstock.test.height", defaultValue: USUAL });
  const height = within(wanted);
  const isLarge = height > USUAL + STEP;
  const dragged = useRef<{ y: number; height: number }>(null);

  const grab = (event: PointerEvent<HTMLElement>) => {
    event.currentTarget.setPointerCapture(event.pointerId);
    dragged.current = { y: event.clientY, height };
  };
  const drag = (event: PointerEvent<HTMLElement>) => {
    const from = dragged.current;
    if (from) setHeight(within(from.height + from.y - event.clientY));
  };
  const press = (event: KeyboardEvent<HTMLElement>) => {
    const by = { ArrowUp: STEP, ArrowDown: -STEP, Home: -largest(), End: largest() }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    setHeight(within(height + by));
  };

  return (
    <section className={classes.dock} style={{ height }} aria-label="Test">
      {/* biome-ignore lint/a11y/useSemanticElements: a rule cannot be moved */}
      <div
        className={classes.grip}
        role="separator"
        aria-orientation="horizontal"
        aria-label="Height of the test panel"
        aria-valuemin={SMALLEST}
        aria-valuemax={largest()}
        aria-valuenow={height}
        tabIndex={0}
        onPointerDown={grab}
        onPointerMove={drag}
        onPointerUp={() => {
          dragged.current = null;
        }}
        onKeyDown={press}
      />
      <Group justify="space-between" px="md" pb={4}>
        <Text fw={650}>Test</Text>
        <Group gap={4}>
          <Tooltip label={isLarge ? "Smaller" : "Larger"}>
            <ActionIcon
              variant="subtle"
              color="gray"
              aria-label={isLarge ? "Shrink the test panel" : "Enlarge the test panel"}
              onClick={() => setHeight(isLarge ? USUAL : largest())}
            >
              {isLarge ? <IconArrowsMinimize size={16} /> : <IconArrowsMaximize size={16} />}
            </ActionIcon>
          </Tooltip>
          <ActionIcon variant="subtle" color="gray" aria-label="Close the test panel" onClick={onClose}>
            <IconX size={16} />
          </ActionIcon>
        </Group>
      </Group>
      <div className={classes.dockBody}>{children}</div>
    </section>
  );
}

const within = (height: number) => Math.round(Math.min(Math.max(height, SMALLEST), largest()));
