import { MantineProvider } from "@mantine/core";
import { ModalsProvider } from "@mantine/modals";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { render as renderBare } from "@testing-library/react";
import type { ReactElement } from "react";
import { MemoryRouter } from "react-router";
import { theme } from "#/theme";

/** Renders a component inside what every page has around it. */
export function render(element: ReactElement, { at = "/" }: { at?: string } = {}) {
  const queries = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  const wrapped = (inner: ReactElement) => (
    <QueryClientProvider client={queries}>
      <MantineProvider theme={theme} env="test">
        <ModalsProvider>
          <MemoryRouter initialEntries={[at]}>{inner}</MemoryRouter>
        </ModalsProvider>
      </MantineProvider>
    </QueryClientProvider>
  );
  const result = renderBare(wrapped(element));
  return { ...result, queries, rerender: (inner: ReactElement) => result.rerender(wrapped(inner)) };
}
