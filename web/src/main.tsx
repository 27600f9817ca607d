import "@mantine/core/styles.css";
import "@mantine/notifications/styles.css";
import "@mantine/spotlight/styles.css";
import "./app/app.css";
import { MantineProvider } from "@mantine/core";
import { ModalsProvider } from "@mantine/modals";
import { Notifications } from "@mantine/notifications";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { RouterProvider } from "react-router";
import { ApiError } from "./api/client";
import { router } from "./app/routes";
import { readable, theme } from "./theme";

const queries = new QueryClient({
  defaultOptions: {
    queries: {
      // What the server refused it will refuse again; what it could not answer is asked again.
      retry: (times, error) =>
        times < 2 &&
        !(error instanceof ApiError && error.status in { 400: 1, 401: 1, 403: 1, 404: 1, 409: 1, 422: 1 }),
      refetchOnWindowFocus: false,
      staleTime: 5_000,
    },
  },
});

createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <MantineProvider theme={theme} cssVariablesResolver={readable} defaultColorScheme="auto">
        <ModalsProvider>
          <Notifications position="bottom-right" />
          <RouterProvider router={router} />
        </ModalsProvider>
      </MantineProvider>
    </QueryClientProvider>
  </StrictMode>,
);
