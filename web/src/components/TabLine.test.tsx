import { Tabs } from "@mantine/core";
import { screen } from "@testing-library/react";
import { expect, it, vi } from "vitest";
import { render } from "#/test/render";
import { TabLine } from "./TabLine";

it("brings the current tab into sight", () => {
  vi.spyOn(HTMLElement.prototype, "offsetLeft", "get").mockReturnValue(600);
  const tabs = ["Overview", "Logs", "YAML"].map((label) => ({ value: label, label }));
  render(
    <Tabs value="YAML">
      <TabLine label="Sections" current="YAML" tabs={tabs} />
    </Tabs>,
  );
  const line = screen.getByRole("tablist").closest(".mantine-Scroller-container")!;
  expect(line.scrollLeft).toBe(600);
});
