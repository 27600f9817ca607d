import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, describe, expect, it, vi } from "vitest";
import { takeSession } from "#/api/session";
import { NO_SESSION, session } from "#/test/people";
import { render } from "#/test/render";
import { of, refused, serve } from "#/test/server";
import type { User } from "./types";
import UsersPage from "./UsersPage";

const user = (name: string, changes: Partial<User> = {}): User => ({
  name,
  role: "viewer",
  via: "password",
  disabled: false,
  created_at: "2026-01-01T00:00:00Z",
  last_login_at: null,
  ...changes,
});

const USERS = { users: [user("anna", { role: "admin" }), user("bert", { disabled: true })] };
const ADMIN = session("admin");

async function act(name: string, action: string) {
  await userEvent.click(await screen.findByRole("button", { name: `Actions of ${name}` }));
  await userEvent.click(await screen.findByRole("menuitem", { name: action }));
}

afterEach(() => vi.unstubAllGlobals());

describe("the users", () => {
  it("are listed with role and state", async () => {
    takeSession(ADMIN);
    serve({ "GET /users": USERS });
    render(<UsersPage />);
    const anna = (await screen.findByText("anna")).closest("tr")!;
    expect(anna).toHaveTextContent("you");
    expect(anna).toHaveTextContent("admin");
    const bert = screen.getByText("bert").closest("tr")!;
    expect(bert).toHaveTextContent("disabled");
    expect(bert).toHaveTextContent("never");
  });

  it("are added with a role and a password", async () => {
    takeSession(ADMIN);
    const asked = serve({ "GET /session": ADMIN, "GET /users": USERS, "POST /users": user("carl") });
    render(<UsersPage />);
    await userEvent.click(await screen.findByRole("button", { name: "Add a user" }));
    const dialog = await screen.findByRole("dialog");
    await userEvent.type(within(dialog).getByLabelText(/^Name/), "carl");
    await userEvent.click(within(dialog).getByRole("combobox", { name: "Role" }));
    await userEvent.click(await screen.findByRole("option", { name: "operator" }));
    await userEvent.type(within(dialog).getByLabelText(/^Password \*/), "abc");
    await userEvent.type(within(dialog).getByLabelText(/^Password, again/), "abc");
    await userEvent.click(within(dialog).getByRole("button", { name: "Add" }));
    await waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());
    expect(of(asked, "POST /users")[0]!.content).toEqual({
      name: "carl",
      role: "operator",
      password: "abc",
    });
    expect(of(asked, "GET /users")).toHaveLength(2);
  });

  it("keep their last admin, and the page says why", async () => {
    takeSession(ADMIN);
    const refusal = refused(409, "last_admin", "anna is the last admin");
    serve({ "GET /users": USERS, "DELETE /users/anna": refusal });
    render(<UsersPage />);
    await act("anna", "Delete");
    const dialog = await screen.findByRole("dialog", { name: "Delete anna?" });
    await userEvent.click(within(dialog).getByRole("button", { name: "Delete" }));
    expect(await within(dialog).findByRole("alert")).toHaveTextContent("anna is the last admin");
  });

  it("get another role, are disabled and enabled", async () => {
    takeSession(ADMIN);
    const asked = serve({
      "GET /session": ADMIN,
      "GET /users": USERS,
      "PATCH /users/anna": user("anna"),
      "PATCH /users/bert": user("bert"),
    });
    render(<UsersPage />);
    await act("anna", "Change role");
    await userEvent.click(await screen.findByRole("combobox", { name: "Role" }));
    await userEvent.click(await screen.findByRole("option", { name: "editor" }));
    await userEvent.click(screen.getByRole("button", { name: "Change role" }));
    await waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());
    await act("anna", "Disable");
    await userEvent.click(await screen.findByRole("button", { name: "Disable" }));
    await waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());
    await act("bert", "Enable");
    await waitFor(() => expect(of(asked, "PATCH /users/bert")).toHaveLength(1));
    expect(of(asked, "PATCH /users/anna").map((each) => each.content)).toEqual([
      { role: "editor" },
      { disabled: true },
    ]);
    expect(of(asked, "PATCH /users/bert")[0]!.content).toEqual({ disabled: false });
  });

  it("begin with an admin, who turns authentication on", async () => {
    takeSession({ ...NO_SESSION, authentication: "off" });
    serve({ "GET /users": { users: [] } });
    render(<UsersPage />);
    expect(await screen.findByText("Authentication is off")).toBeInTheDocument();
    await userEvent.click(await screen.findByRole("button", { name: "Add a user" }));
    expect(await screen.findByRole("combobox", { name: "Role" })).toHaveValue("admin");
  });
});
