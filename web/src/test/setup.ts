import "@testing-library/jest-dom/vitest";
import { cleanup, configure } from "@testing-library/react";
import { afterEach, beforeEach, vi } from "vitest";
import { OPEN, takeSession } from "#/api/session";

configure({ asyncUtilTimeout: 10_000 }); // a busy machine may take its time to load a part of a page

beforeEach(() => takeSession(OPEN)); // everybody may do everything, unless a test says otherwise
afterEach(cleanup);

// What Mantine asks of a browser and jsdom does not have.
Object.defineProperty(window, "matchMedia", {
  writable: true,
  value: (query: string) => ({
    matches: false,
    media: query,
    onchange: null,
    addEventListener: vi.fn(),
    removeEventListener: vi.fn(),
    addListener: vi.fn(),
    removeListener: vi.fn(),
    dispatchEvent: vi.fn(),
  }),
});

class ResizeObserver {
  observe() {}
  unobserve() {}
  disconnect() {}
}
window.ResizeObserver = window.ResizeObserver ?? ResizeObserver;
window.HTMLElement.prototype.scrollIntoView = () => {};

// What growing text areas and the code editor ask for.
Object.defineProperty(document, "fonts", { value: new EventTarget() });
window.Range.prototype.getClientRects = () => [] as unknown as DOMRectList;
