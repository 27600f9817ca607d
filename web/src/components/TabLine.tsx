import { Group, Scroller, Tabs } from "@mantine/core";
import { useElementSize, useViewportSize } from "@mantine/hooks";
import { type ReactNode, useEffect, useRef } from "react";

interface Props {
  label: string;
  current: string;
  tabs: readonly { value: string; label: string; beside?: ReactNode }[];
}

/** The tabs of a page in one line. If they don't fit they scroll, with arrows, and the current one is in sight. */
export function TabLine({ label, current, tabs }: Props) {
  const line = useRef<HTMLDivElement>(null);
  const { width: room } = useViewportSize();
  const { ref: list, width: needed } = useElementSize<HTMLDivElement>();
  // biome-ignore lint/correctness/useExhaustiveDependencies: another tab, less room or a wider label moves the line
  useEffect(() => {
    const tab = line.current?.querySelector<HTMLElement>("[role=tab][aria-selected=true]");
    const view = tab?.closest<HTMLElement>(".mantine-Scroller-container");
    if (tab && view) view.scrollLeft = tab.offsetLeft - (view.clientWidth - tab.offsetWidth) / 2;
  }, [current, room, needed]);
  return (
    <Scroller ref={line} controlSize={32} draggable={false}>
      <Tabs.List ref={list} style={{ flexWrap: "nowrap" }} aria-label={label}>
        {tabs.map((each) => (
          <Tabs.Tab key={each.value} value={each.value} style={{ flexShrink: 0 }}>
            <Group gap={6} wrap="nowrap">
              {each.label}
              {each.beside}
            </Group>
          </Tabs.Tab>
        ))}
      </Tabs.List>
    </Scroller>
  );
}
