import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type AnyDocument, KINDS } from "#/api/kinds";
import { takeSession } from "#/api/session";
import { Toolbar } from "#/documents/Toolbar";
import { ViewDrawer } from "#/documents/ViewDrawer";
import type { Letter, SinkInfo } from "#/flows/api";
import { FlowActions } from "#/flows/FlowActions";
import { FlowTabs } from "#/flows/FlowTabs";
import { LetterEditor } from "#/flows/letters/LetterEditor";
import LettersTab from "#/flows/letters/LettersTab";
import RevisionsTab from "#/flows/revisions/RevisionsTab";
import { SinkCard } from "#/flows/SinkCard";
import TestTab from "#/flows/TestTab";
import { FirstSteps } from "#/overview/FirstSteps";
import SettingsPage from "#/settings/SettingsPage";
import type { Stats } from "#/streams/api";
import { ReadersTab } from "#/streams/ReadersTab";
import { StreamActions } from "#/streams/StreamActions";
import { session } from "#/test/people";
import { render } from "#/test/render";
import { serve } from "#/test/server";
import { AllowedPage } from "./Allowed";
import { ROLES, type Role } from "./types";

const orders = {
  kind: "Pipeline",
  id: "orders",
  name: "orders",
  metadata: { name: "orders" },
  spec: { tests: [{ name: "works", input: [], expect: {} }] },
  status: "active",
  revision: 2,
  created_at: "2026-01-01T00:00:00Z",
  updated_at: "2026-01-01T00:00:00Z",
} as unknown as AnyDocument;
const stream = { ...orders, kind: "Stream", spec: {}, status: undefined } as AnyDocument;

const letter = {
  ...{ offset: 3, state: "new", edited: false, event: { a: 1 }, original: { a: 1 }, code: "bad", step: "s" },
  ...{ time: "2026-01-01T00:00:00Z", attempt: 1, reason: null, replays: [], headers: {}, obstacle: null },
} as unknown as Letter;

const revision = (number: number) => ({
  revision: number,
  origin: "api",
  created_at: "2026-01-01T00:00:00Z",
});

const names = (role: "button" | "link" | "menuitem" | "tab" | "checkbox") =>
  screen.queryAllByRole(role).map((each) => each.getAttribute("aria-label") ?? each.textContent);

/** Renders something for a role. */
function as(role: Role, element: React.ReactElement) {
  takeSession(session(role));
  return render(element);
}

const controls = { act: vi.fn(), pending: null, refused: null, dismiss: vi.fn() };
const flow = { kind: KINDS.Pipeline, document: orders };

beforeEach(() => {
  vi.stubGlobal("EventSource", undefined);
  serve({
    "GET /pipelines/orders": orders,
    "GET /pipelines/orders/dead-letters": {
      letters: [letter],
      total: 1,
      next: null,
      states: { new: 1 },
      counts: [],
    },
    "GET /pipelines/orders/revisions": [revision(2), revision(1)],
  });
});
afterEach(() => vi.unstubAllGlobals());

describe("what a role may not do is not there", () => {
  it("in the header of a flow", async () => {
    const view = as("viewer", <FlowActions {...flow} controls={controls} />);
    expect(names("button")).toEqual([]);
    view.unmount();

    const operator = as("operator", <FlowActions {...flow} controls={controls} />);
    expect(names("button")).toEqual(["Pause", "Restart", "Stop", "More actions"]);
    expect(names("link")).toEqual([]);
    await userEvent.click(screen.getByRole("button", { name: "More actions" }));
    expect((await screen.findAllByRole("menuitem")).map((each) => each.textContent)).toEqual([
      "Replay events",
    ]);
    operator.unmount();

    as("editor", <FlowActions {...flow} controls={controls} />);
    expect(names("link")).toEqual(["Edit"]);
    await userEvent.click(screen.getByRole("button", { name: "More actions" }));
    expect((await screen.findAllByRole("menuitem")).map((each) => each.textContent)).toEqual([
      "Replay events",
      "Clone",
      "Delete",
    ]);
  });

  it("in the tabs of a flow and its tests", async () => {
    const view = as("viewer", <FlowTabs {...flow} />);
    expect(names("tab")).not.toContain("Test");
    view.unmount();
    const operator = as("operator", <TestTab {...flow} />);
    await userEvent.click(await screen.findByRole("tab", { name: /Test cases/ }));
    expect(await screen.findByRole("button", { name: "Run works" })).toBeInTheDocument();
    expect(screen.queryByRole("button", { name: "Delete works" })).toBeNull();
    operator.unmount();
    as("editor", <TestTab {...flow} />);
    await userEvent.click(await screen.findByRole("tab", { name: /Test cases/ }));
    expect(await screen.findByRole("button", { name: "Delete works" })).toBeInTheDocument();
  });

  it("in its revisions and sinks", async () => {
    const sink = {
      ...{ id: "out", type: "file", path: "x", state: "behind", gaps: [] },
    } as unknown as SinkInfo;
    const both = (
      <>
        <RevisionsTab {...flow} />
        <SinkCard kind={KINDS.Pipeline} id="orders" sink={sink} />
      </>
    );
    const found = async (role: Role) => {
      const view = as(role, both);
      await screen.findByText("current");
      const buttons = names("button");
      view.unmount();
      return buttons;
    };
    expect(await found("viewer")).toEqual([]);
    expect(await found("operator")).toEqual(["Catch up now"]);
    expect(await found("editor")).toEqual(["Roll back to revision 1", "Catch up now"]);
  });

  it("in its dead letters", async () => {
    const tab = <LettersTab {...flow} />;
    const view = as("viewer", tab);
    await screen.findByText("bad");
    expect(names("checkbox")).toEqual([]);
    expect(screen.queryByRole("button", { name: /Replay/ })).toBeNull();
    view.unmount();
    as("operator", tab);
    await screen.findByText("bad");
    expect(names("checkbox")).toEqual(["Select all on this page", "Select letter 3"]);
    expect(screen.getByRole("button", { name: "Replay all new letters" })).toBeInTheDocument();
  });

  it("in one dead letter", () => {
    const editor = <LetterEditor kind={KINDS.Pipeline} id="orders" letter={letter} onReplay={vi.fn()} />;
    const view = as("viewer", editor);
    expect(names("button")).toEqual([]);
    view.unmount();
    as("operator", editor);
    expect(names("button")).toEqual(["Replay", "Discard"]);
  });

  it("on the page of a stream", () => {
    const reader = { reader: "r", cursor: 1, lag_events: 0, lag_ms: null, skipped: 0, updated: null };
    const both = (
      <>
        <StreamActions document={stream} readers={[]} />
        <ReadersTab id="orders" stats={{ readers: [reader] } as unknown as Stats} pulse={undefined} />
      </>
    );
    const found = (role: Role) => {
      const view = as(role, both);
      const all = [...names("button"), ...names("link")];
      view.unmount();
      return all;
    };
    expect(found("viewer")).toEqual([]);
    expect(found("operator")).toEqual(["Replay", "Forget", "Query"]);
    expect(found("editor")).toEqual(["Replay", "Delete", "Forget", "Query", "Edit", "Clone"]);
  });

  it("beside a grid, in its drawer and where it is empty", async () => {
    const parts = (
      <>
        <Toolbar
          kind={KINDS.Pipeline}
          search=""
          onSearch={vi.fn()}
          filtered={false}
          onClear={vi.fn()}
          selected={[orders]}
          onDelete={vi.fn()}
          onUpload={vi.fn()}
          hidden={[]}
          onHidden={vi.fn()}
        />
        <FirstSteps />
      </>
    );
    const view = as("operator", parts);
    expect([...names("button"), ...names("link")]).toEqual(["Pause 1", "Columns", "Download"]);
    view.unmount();
    const editor = as("editor", parts);
    expect([...names("button"), ...names("link")]).toEqual([
      "Pause 1",
      "Delete 1",
      "Columns",
      "Download",
      "Upload",
      "Choose a file",
      "Create",
      "Open the builder",
      "Create a stream",
    ]);
    editor.unmount();
    as("operator", <ViewDrawer document={orders} onClose={vi.fn()} />);
    const drawer = await screen.findByRole("dialog");
    expect(within(drawer).queryByRole("link", { name: "Edit" })).toBeNull();
    expect(within(drawer).getByRole("link", { name: "Open page" })).toBeInTheDocument();
  });

  it("in the settings", async () => {
    const view = as("editor", <SettingsPage />);
    expect(screen.getByRole("heading", { name: "Theme" })).toBeInTheDocument();
    expect(screen.queryByRole("heading", { name: "Access" })).toBeNull();
    view.unmount();
    as("admin", <SettingsPage />);
    await waitFor(() => expect(screen.getByRole("heading", { name: "Access" })).toBeInTheDocument());
  });

  it.each(ROLES)("as a page: %s", (role) => {
    as(role, <AllowedPage needs="editor">The form</AllowedPage>);
    const isThere = role === "editor" || role === "admin";
    expect(screen.queryByText("The form") !== null).toBe(isThere);
    expect(screen.queryByText("This page needs the role editor") === null).toBe(isThere);
  });
});
