import { Group, Scroller, Tabs } from "@mantine/core";
import { useViewportSize } from "@mantine/hooks";
import { type ReactNode, useEffect, useRef } from "react";

interface Props {
  label: string;
  current: string;
  tabs: readonly { value: string; label: string; beside?: ReactNode }[];
}

/** The tabs of a page in one line. If they don't fit they scroll, with arrows, and the current one is in sight. */
export function TabLine({ label, current, tabs }: Props) {
  const line = useRef<HTMLDivElement>(null);
  const { width } = useViewportSize();
  // biome-ignore lint/correctness/useExhaustiveDependencies: another tab or less room moves the line
  useEffect(() => {
    const tab = line.current?.querySelector<HTMLElement>("[role=tab][aria-selected=true]");
    const view = tab?.closest<HTMLElement>(".mantine-Scroller-container");
    if (tab && view) view.scrollLeft = tab.offsetLeft - (view.clientWidth - tab.offsetWidth) / 2;
  }, [current, width]);
  return (
    <Scroller ref={line} controlSize={32} draggable={false}>
      <Tabs.List style={{ flexWrap: "nowrap" }} aria-label={label}>
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
