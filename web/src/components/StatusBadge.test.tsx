import { screen } from "@testing-library/react";
import { describe, expect, it } from "vitest";
import { render } from "#/test/render";
import { StatusBadge } from "./StatusBadge";

describe("StatusBadge", () => {
  it.each([
    ["running", "active", "teal"],
    ["starting", "starting", "blue"],
    ["waiting", "waiting", "blue"],
    ["backing_off", "backing off", "orange"],
    ["stalled", "stalled", "red"],
  ])("shows an active flow that is %s as %s", (phase, word, color) => {
    render(<StatusBadge status="active" phase={phase} />);
    const badge = screen.getByText(word).closest<HTMLElement>(".mantine-Badge-root")!;
    expect(badge.style.getPropertyValue("--badge-color")).toContain(color);
  });
});
