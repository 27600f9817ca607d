import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, describe, expect, it, vi } from "vitest";
import { takeSession } from "#/api/session";
import { NO_SESSION, session } from "#/test/people";
import { render } from "#/test/render";
import { of, refused, serve } from "#/test/server";
import UserMenu from "./UserMenu";

async function open() {
  render(<UserMenu />);
  await userEvent.click(screen.getByRole("button", { name: "Account of anna" }));
  await screen.findByText("anna, viewer");
}

afterEach(() => vi.unstubAllGlobals());

describe("the menu of a user", () => {
  it("leads to one's tokens and logs out", async () => {
    takeSession(session("viewer"));
    const asked = serve({ "DELETE /session": null, "GET /session": NO_SESSION });
    await open();
    expect(screen.getByRole("menuitem", { name: "My tokens" })).toHaveAttribute("href", "/tokens?mine");
    await userEvent.click(screen.getByRole("menuitem", { name: "Log out" }));
    await waitFor(() => expect(screen.queryByRole("button")).toBeNull());
    expect(of(asked, "DELETE /session")[0]!.headers.get("X-CSRF-Token")).toBe("token-of-the-session");
  });

  it("changes one's password", async () => {
    takeSession(session("viewer"));
    const replies: Record<string, unknown> = {
      "PUT /session/password": refused(401, "wrong_login", "the current password is wrong"),
      "GET /session": session("viewer"),
    };
    const asked = serve(replies);
    await open();
    await userEvent.click(screen.getByRole("menuitem", { name: "Change password" }));
    await userEvent.type(await screen.findByLabelText(/^Current password/), "old");
    await userEvent.type(screen.getByLabelText(/^New password \*/), "new");
    await userEvent.type(screen.getByLabelText(/^New password, again/), "new{Enter}");
    expect(await screen.findByRole("alert")).toHaveTextContent("the current password is wrong");
    replies["PUT /session/password"] = null;
    await userEvent.type(screen.getByLabelText(/^New password, again/), "{Enter}");
    await waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());
    expect(of(asked, "PUT /session/password")[1]!.content).toEqual({ current: "old", new: "new" });
  });

  it("has no password for somebody who logs in elsewhere", async () => {
    const { user, ...rest } = session("viewer");
    takeSession({ ...rest, user: { ...user!, via: "oidc" } });
    await open();
    expect(screen.queryByRole("menuitem", { name: "Change password" })).toBeNull();
  });
});
