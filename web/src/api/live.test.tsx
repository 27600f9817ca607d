import { act, screen } from "@testing-library/react";
import { Route, Routes } from "react-router";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Gate } from "#/access/Gate";
import { NO_SESSION, session } from "#/test/people";
import { render } from "#/test/render";
import { serve } from "#/test/server";
import { useLive } from "./live";
import { takeSession } from "./session";

class Source {
  static CLOSED = 2;
  static all: Source[] = [];
  readyState = 1;
  onerror: (() => void) | null = null;
  constructor(readonly url: string) {
    Source.all.push(this);
  }
  addEventListener() {}
  close() {
    this.readyState = Source.CLOSED;
  }
}

const open = () => Source.all.filter((each) => each.readyState !== Source.CLOSED).map((each) => each.url);

function Page() {
  useLive();
  return <h1>The app</h1>;
}

beforeEach(() => {
  Source.all = [];
  vi.stubGlobal("EventSource", Source);
});
afterEach(() => vi.unstubAllGlobals());

describe("live connections", () => {
  it("end with the session and come back with the next one", async () => {
    takeSession(session("viewer"));
    serve({ "GET /session": NO_SESSION });
    render(
      <Routes>
        <Route path="login" element={<h1>Log in</h1>} />
        <Route element={<Gate />}>
          <Route path="*" element={<Page />} />
        </Route>
      </Routes>,
    );
    expect(open()).toEqual(["/events", "/overview/follow"]);

    // The server refuses the connection; a browser does not say that this is a 401.
    Source.all[0]!.close();
    act(() => Source.all[0]!.onerror?.());
    expect(await screen.findByRole("heading", { name: "Log in" })).toBeInTheDocument();
    expect(open()).toEqual([]);
  });

  it("are opened by a page that is shown after a login", () => {
    takeSession(NO_SESSION);
    const page = (
      <Routes>
        <Route path="login" element={<h1>Log in</h1>} />
        <Route element={<Gate />}>
          <Route path="*" element={<Page />} />
        </Route>
      </Routes>
    );
    render(page).unmount();
    expect(open()).toEqual([]);
    takeSession(session("viewer"));
    render(page);
    expect(open()).toEqual(["/events", "/overview/follow"]);
  });
});
