import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { Route, Routes, useLocation } from "react-router";
import { afterEach, describe, expect, it, vi } from "vitest";
import { api } from "#/api/client";
import { takeSession } from "#/api/session";
import { NO_SESSION, session } from "#/test/people";
import { render } from "#/test/render";
import { of, refused, serve } from "#/test/server";
import { Entrance, Gate } from "./Gate";
import LoginPage from "./LoginPage";
import SetupPage from "./SetupPage";

function Place() {
  const { pathname, search, hash } = useLocation();
  return <output>{pathname + search + hash}</output>;
}

const show = (at: string) =>
  render(
    <>
      <Place />
      <Routes>
        <Route element={<Entrance />}>
          <Route path="login" element={<LoginPage />} />
          <Route path="setup" element={<SetupPage />} />
          <Route element={<Gate />}>
            <Route path="*" element={<h1>The app</h1>} />
          </Route>
        </Route>
      </Routes>
    </>,
    { at },
  );

const place = () => screen.getByRole("status").textContent;

async function logIn(name: string, password: string) {
  await userEvent.type(await screen.findByLabelText(/^Name/), name);
  await userEvent.type(screen.getByLabelText(/^Password/), password);
  await userEvent.click(screen.getByRole("button", { name: "Log in" }));
}

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
  sessionStorage.clear();
});

describe("the login", () => {
  it("is skipped where authentication is off", async () => {
    takeSession(null);
    serve({ "GET /session": { ...NO_SESSION, authentication: "off" } });
    show("/streams");
    expect(await screen.findByRole("heading", { name: "The app" })).toBeInTheDocument();
  });

  it("leads back to the page that was asked for", async () => {
    takeSession(null);
    const asked = serve({ "GET /session": NO_SESSION, "POST /session": session("viewer") });
    show("/pipelines/orders?tab=letters");
    await logIn("anna", "abc");
    expect(await screen.findByRole("heading", { name: "The app" })).toBeInTheDocument();
    expect(place()).toBe("/pipelines/orders?tab=letters");
    expect(of(asked, "POST /session")[0]!.content).toEqual({ name: "anna", password: "abc" });
  });

  it("leads to pages of the app only", async () => {
    takeSession(session("viewer"));
    show(`/login?next=${encodeURIComponent("//elsewhere.example")}`);
    expect(place()).toBe("/");
  });

  it("says what was wrong, and lets one try again", async () => {
    takeSession(NO_SESSION);
    serve({ "POST /session": refused(401, "wrong_login", "wrong name or password") });
    show("/login");
    await logIn("anna", "guess");
    expect(await screen.findByRole("alert")).toHaveTextContent("wrong name or password");
    expect(screen.getByLabelText(/^Password/)).toHaveValue("");
    expect(screen.getByLabelText(/^Password/)).toHaveFocus();
    expect(screen.getByRole("button", { name: "Log in" })).toBeEnabled();
  });

  it("is locked for as long as the server says", async () => {
    takeSession(NO_SESSION);
    const locked = refused(429, "too_many_attempts", "too many failed attempts", { "Retry-After": "2" });
    serve({ "POST /session": locked });
    const now = Date.now();
    vi.useFakeTimers({ now, toFake: ["Date"] }); // on a busy machine, two seconds pass before one can look
    show("/login");
    await logIn("anna", "guess");
    expect(await screen.findByRole("button", { name: "Try again in 2 s" })).toBeDisabled();
    expect(screen.getByRole("alert")).toHaveTextContent("too many failed attempts");
    vi.setSystemTime(now + 2000);
    await waitFor(() => expect(screen.getByRole("button", { name: "Log in" })).toBeEnabled());
  });

  it("offers another server's login, and remembers the page meanwhile", async () => {
    takeSession({ ...NO_SESSION, oidc: { label: "Acme" } });
    const { unmount } = show("/login?next=%2Fstreams&error=oidc_state");
    expect(screen.getByRole("alert")).toHaveTextContent("The log-in took too long");
    const link = screen.getByRole("link", { name: "Log in with Acme" });
    expect(link).toHaveAttribute("href", "/session/oidc");
    link.addEventListener("click", (event) => event.preventDefault());
    await userEvent.click(link);
    unmount();
    takeSession(session("viewer"));
    show("/");
    await waitFor(() => expect(place()).toBe("/streams"));
  });
});

describe("a session that has ended", () => {
  it("is noticed by the next request, and the same page is shown after the login", async () => {
    takeSession(session("editor"));
    serve({
      "GET /session": NO_SESSION,
      "GET /streams": refused(401, "unauthorised", "log in first"),
      "POST /session": session("editor"),
    });
    show("/streams/orders");
    expect(screen.getByRole("heading", { name: "The app" })).toBeInTheDocument();
    await api.GET("/streams");
    await logIn("anna", "abc");
    expect(await screen.findByRole("heading", { name: "The app" })).toBeInTheDocument();
    expect(place()).toBe("/streams/orders");
  });

  it("is noticed when another tab has logged out", async () => {
    takeSession(session("editor"));
    serve({ "GET /session": NO_SESSION });
    show("/streams");
    window.dispatchEvent(new StorageEvent("storage", { key: "penstock.session" }));
    expect(await screen.findByRole("heading", { name: "Log in" })).toBeInTheDocument();
  });
});

describe("the set-up", () => {
  it("takes the secret out of the address and creates the first admin with it", async () => {
    takeSession({ ...NO_SESSION, setup: true });
    const asked = serve({ "POST /session/setup": session("admin") });
    show("/setup#one-time");
    await waitFor(() => expect(place()).toBe("/setup"));
    await userEvent.type(screen.getByLabelText(/^Name/), "anna");
    await userEvent.type(screen.getByLabelText(/^Password \*/), "abc");
    await userEvent.type(screen.getByLabelText(/^Password, again/), "abd");
    await userEvent.click(screen.getByRole("button", { name: "Create the admin" }));
    expect(screen.getByText("The two passwords differ")).toBeInTheDocument();
    expect(asked).toEqual([]);
    await userEvent.clear(screen.getByLabelText(/^Password, again/));
    await userEvent.type(screen.getByLabelText(/^Password, again/), "abc");
    await userEvent.click(screen.getByRole("button", { name: "Create the admin" }));
    expect(await screen.findByRole("heading", { name: "The app" })).toBeInTheDocument();
    expect(asked[0]!.content).toEqual({ secret: "one-time", name: "anna", password: "abc" });
  });

  it("is where everybody is led while there is no user, and asks for its link", async () => {
    takeSession({ ...NO_SESSION, setup: true });
    show("/streams");
    expect(await screen.findByText(/Open the set-up link/)).toBeInTheDocument();
    expect(place()).toBe("/setup");
  });

  it("is over once there is a user", () => {
    takeSession(NO_SESSION);
    show("/setup#one-time");
    expect(screen.getByText("This server already has users.")).toBeInTheDocument();
    expect(screen.getByRole("link", { name: "Log in" })).toHaveAttribute("href", "/login");
  });
});
