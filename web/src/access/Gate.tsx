import { Box, Text } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { Suspense, useEffect, useState } from "react";
import { Navigate, Outlet, useLocation, useNavigate } from "react-router";
import { CHANGED, readSession, useKnownSession, userOf, useSession } from "#/api/session";
import { Loading } from "#/components/Page";
import { loginAt, takeReturn } from "./places";

const RETRY_MS = 1000;

/** Around all pages: shows none before the server has said who uses the app. */
export function Entrance() {
  const session = useKnownSession();
  const [isLost, setLost] = useState(false);
  const isKnown = session !== null;
  useOtherTabs();
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout>;
    const read = () =>
      readSession().then(
        () => setLost(false),
        () => {
          setLost(true);
          timer = setTimeout(read, RETRY_MS);
        },
      );
    if (!isKnown) void read();
    return () => clearTimeout(timer);
  }, [isKnown]);
  if (isKnown) {
    return (
      <Suspense fallback={<Loading />}>
        <Outlet />
      </Suspense>
    );
  }
  return (
    <Box component="main" pt="20vh">
      <Loading what="Asking the server" />
      {isLost && (
        <Text ta="center" role="status">
          The server isn't responding. This page continues when the server is back.
        </Text>
      )}
    </Box>
  );
}

/** Takes part in what another tab of this browser does: logging in and out. */
function useOtherTabs(): void {
  const queries = useQueryClient();
  useEffect(() => {
    const take = ({ key }: StorageEvent) => {
      if (key !== CHANGED) return;
      readSession().then(
        () => queries.invalidateQueries(),
        () => undefined,
      );
    };
    window.addEventListener("storage", take);
    return () => window.removeEventListener("storage", take);
  }, [queries]);
}

/** Lets those in who are logged in; others log in, or set the server up, and come back to the same page. */
export function Gate() {
  const session = useSession();
  const { pathname, search } = useLocation();
  const user = userOf(session);
  useReturn(user !== null);
  if (user === null) {
    return <Navigate to={session.setup ? "/setup" : loginAt(pathname + search)} replace />;
  }
  return <Outlet key={user.name} />;
}

/** Goes back to the page that led to a login at another server, which sends everybody to the first page. */
function useReturn(isIn: boolean): void {
  const navigate = useNavigate();
  const { pathname } = useLocation();
  const isFirstPage = pathname === "/";
  useEffect(() => {
    const page = isIn ? takeReturn() : null;
    if (page !== null && isFirstPage) void navigate(page, { replace: true });
  }, [isIn, isFirstPage, navigate]);
}
