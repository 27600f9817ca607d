import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";
import { render } from "#/test/render";
import { SettingsList } from "./SettingsList";
import { inWords, type Setting, sections, written } from "./settings";

const setting = (name: string, change: Partial<Setting> = {}): Setting => ({
  ...{ name, value: 1, default: 1, origin: "built-in", variable: `PENSTOCK_${name.toUpperCase()}` },
  ...{ description: `What ${name} is for.`, choices: [] },
  ...change,
});

describe("settings", () => {
  it("are grouped by the table of the file they are in", () => {
    const found = sections([setting("port"), setting("log.level"), setting("log.format")]);
    expect(found.map(({ name, settings }) => [name, settings.length])).toEqual([
      ["", 1],
      ["log", 2],
    ]);
  });

  it("are written as values, and in larger units where the name tells the unit", () => {
    expect([null, "", "info", {}, true].map(written)).toEqual(["not set", '""', "info", "{}", "true"]);
    expect(inWords(setting("worker.lease_ms", { value: 10_000 }))).toBe("10 s");
    expect(inWords(setting("streams.free_bytes", { value: 268_435_456 }))).toBe("256 MiB");
    expect(inWords(setting("port", { value: 8080 }))).toBeNull();
  });

  it("are found by what they are for, and by whether somebody has set them", async () => {
    render(
      <SettingsList settings={[setting("host"), setting("port", { origin: "command line", value: 2 })]} />,
    );
    await userEvent.type(screen.getByLabelText("Find a setting"), "what host");
    expect(screen.queryByText("port")).toBeNull();
    await userEvent.clear(screen.getByLabelText("Find a setting"));
    await userEvent.click(screen.getByLabelText("Only changed settings"));
    expect(screen.queryByText("host")).toBeNull();
    expect(screen.getByText("built-in: 1")).toBeInTheDocument();
  });
});
