import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Role } from "#/access/types";
import { OPEN, takeSession } from "#/api/session";
import { session } from "#/test/people";
import { render } from "#/test/render";
import { Shell } from "./Shell";

class Silent {
  addEventListener() {}
  close() {}
}

beforeEach(() => vi.stubGlobal("EventSource", Silent));
afterEach(() => vi.unstubAllGlobals());

const entries = () => [...document.querySelectorAll("nav a[href]")].map((each) => each.textContent);

describe("the frame around a page", () => {
  it("is as ever where authentication is off", () => {
    takeSession(OPEN);
    render(<Shell />);
    expect(entries()).toHaveLength(12);
    expect(screen.queryByText("Access")).toBeNull();
    expect(screen.queryByRole("button", { name: /Account/ })).toBeNull();
  });

  it.each([
    ["viewer", false, ["Tokens"]],
    ["operator", true, ["Tokens"]],
    ["admin", true, ["Users", "Tokens", "Audit log"]],
  ] satisfies [Role, boolean, string[]][])("leads to what is for a %s", (role, queries, expected) => {
    takeSession(session(role));
    render(<Shell />);
    expect(entries().includes("SQL console")).toBe(queries);
    expect(entries().slice(entries().indexOf("Settings") + 1)).toEqual(expected);
  });

  it("offers in the palette what the role may do", async () => {
    takeSession(session("viewer"));
    render(<Shell />);
    await userEvent.click(screen.getByRole("button", { name: /Search and commands/ }));
    expect(await screen.findByRole("button", { name: /^Tokens/ })).toBeInTheDocument();
    expect(screen.queryByRole("button", { name: /^Create a pipeline/ })).toBeNull();
    expect(screen.queryByRole("button", { name: /^Users/ })).toBeNull();
  });
});
