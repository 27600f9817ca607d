import {
  ActionIcon,
  Anchor,
  AppShell,
  Burger,
  Group,
  Kbd,
  NavLink,
  ScrollArea,
  Text,
  Tooltip,
  UnstyledButton,
  useComputedColorScheme,
  useMantineColorScheme,
  VisuallyHidden,
} from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import {
  IconArrowsRightLeft,
  IconBinaryTree2,
  IconDatabaseExport,
  IconDatabaseImport,
  IconFileSearch,
  IconHistory,
  IconKey,
  IconLayoutDashboard,
  IconLock,
  IconMoon,
  IconSearch,
  IconServer,
  IconSettings,
  IconSun,
  IconTerminal2,
  IconTimeline,
  IconTransform,
  IconUsers,
} from "@tabler/icons-react";
import { type ComponentType, lazy, Suspense, useEffect } from "react";
import { Link, Outlet, useLocation } from "react-router";
import { useLive } from "#/api/live";
import { usePulse } from "#/api/overview";
import { useAllowed, useSession } from "#/api/session";
import { Loading } from "#/components/Page";
import { HelpMenu } from "#/tour/HelpMenu";
import { TourCard } from "#/tour/TourCard";
import { TourOffer } from "#/tour/TourOffer";
import { useTour } from "#/tour/useTour";
import { ConnectionBanner } from "./ConnectionBanner";
import { openPalette, Palette } from "./Palette";
import { StartBanner } from "./StartBanner";

interface Entry {
  to: string;
  label: string;
  icon: ComponentType<{ size?: number; stroke?: number }>;
}

const ENTRIES: Entry[] = [
  { to: "/", label: "Overview", icon: IconLayoutDashboard },
  { to: "/topology", label: "Topology", icon: IconBinaryTree2 },
  { to: "/pipelines", label: "Pipelines", icon: IconArrowsRightLeft },
  { to: "/streams", label: "Streams", icon: IconTimeline },
  { to: "/sources", label: "Sources", icon: IconDatabaseImport },
  { to: "/tasks", label: "Tasks", icon: IconTransform },
  { to: "/sinks", label: "Sinks", icon: IconDatabaseExport },
  { to: "/secrets", label: "Secrets", icon: IconLock },
  { to: "/logs", label: "Logs", icon: IconFileSearch },
  { to: "/workers", label: "Workers", icon: IconServer },
  { to: "/settings", label: "Settings", icon: IconSettings },
];

const SQL: Entry = { to: "/sql", label: "SQL console", icon: IconTerminal2 };
/** The console stands below the streams that it queries. */
const WITH_SQL = ENTRIES.flatMap((entry) => (entry.to === "/streams" ? [entry, SQL] : [entry]));

const USERS: Entry = { to: "/users", label: "Users", icon: IconUsers };
const TOKENS: Entry = { to: "/tokens", label: "Tokens", icon: IconKey };
const AUDIT: Entry = { to: "/audit", label: "Audit log", icon: IconHistory };

const UserMenu = lazy(() => import("#/access/UserMenu"));

/** What every page has around it: navigation, the state of the connection, the command palette. */
export function Shell() {
  useLive();
  const [opened, { toggle, close }] = useDisclosure();
  const { pathname } = useLocation();
  const hasUsers = useSession().authentication === "on";
  const isAdmin = useAllowed("admin");
  const mayQuery = useAllowed("operator");
  const tour = useTour();
  // biome-ignore lint/correctness/useExhaustiveDependencies: another page closes the menu of small screens
  useEffect(close, [pathname]);
  return (
    <AppShell
      header={{ height: 52 }}
      navbar={{ width: 208, breakpoint: "sm", collapsed: { mobile: !opened } }}
      padding="md"
    >
      <a href="#content" className="skip">
        Skip to content
      </a>
      <AppShell.Header>
        <Group h="100%" px="md" justify="space-between" wrap="nowrap">
          <Group gap="sm" wrap="nowrap">
            <Burger opened={opened} onClick={toggle} hiddenFrom="sm" size="sm" aria-label="Navigation" />
            <Anchor component={Link} to="/" underline="never" c="inherit">
              <Group gap={8} wrap="nowrap">
                <img src="/ui/favicon.svg" width={26} height={26} alt="" />
                <Text fw={700} size="lg">
                  Penstock
                </Text>
              </Group>
            </Anchor>
          </Group>
          <Group gap="xs" wrap="nowrap">
            <UnstyledButton className="search-box" onClick={openPalette}>
              <IconSearch size={16} stroke={1.6} />
              <VisuallyHidden hiddenFrom="sm">Search and commands</VisuallyHidden>
              <Text size="sm" visibleFrom="sm">
                Search and commands
              </Text>
              <Kbd size="xs" visibleFrom="sm">
                Ctrl K
              </Kbd>
            </UnstyledButton>
            <SchemeSwitch />
            <HelpMenu tour={tour} />
            <Suspense>{hasUsers && <UserMenu />}</Suspense>
          </Group>
        </Group>
      </AppShell.Header>
      <AppShell.Navbar p="xs" aria-label="Main">
        <AppShell.Section grow component={ScrollArea}>
          <Entries entries={mayQuery ? WITH_SQL : ENTRIES} pathname={pathname} />
          {hasUsers && (
            <section aria-labelledby="access">
              <Text id="access" size="xs" fw={600} c="dimmed" px="xs" mt="sm" mb={4}>
                Access
              </Text>
              <Entries entries={isAdmin ? [USERS, TOKENS, AUDIT] : [TOKENS]} pathname={pathname} />
            </section>
          )}
        </AppShell.Section>
        <AppShell.Section>
          <Version />
        </AppShell.Section>
      </AppShell.Navbar>
      <AppShell.Main id="content" tabIndex={-1}>
        <ConnectionBanner />
        <StartBanner />
        {pathname === "/" && <TourOffer tour={tour} />}
        <Suspense fallback={<Loading />}>
          <Outlet />
        </Suspense>
      </AppShell.Main>
      <Palette />
      <TourCard tour={tour} />
    </AppShell>
  );
}

function Entries({ entries, pathname }: { entries: readonly Entry[]; pathname: string }) {
  return entries.map(({ to, label, icon: Icon }) => (
    <NavLink
      key={to}
      component={Link}
      to={to}
      label={label}
      leftSection={<Icon size={18} stroke={1.6} />}
      active={isAt(pathname, to)}
      aria-current={isAt(pathname, to) ? "page" : undefined}
    />
  ));
}

const isAt = (pathname: string, to: string) =>
  to === "/" ? pathname === "/" : pathname === to || pathname.startsWith(`${to}/`);

function Version() {
  const { overview } = usePulse();
  return (
    <Text size="xs" c="dimmed" p="xs">
      {overview ? `Penstock ${overview.version}` : " "}
    </Text>
  );
}

function SchemeSwitch() {
  const { setColorScheme } = useMantineColorScheme();
  const scheme = useComputedColorScheme("light");
  const next = scheme === "dark" ? "light" : "dark";
  return (
    <Tooltip label={`Use the ${next} theme`}>
      <ActionIcon
        variant="subtle"
        color="gray"
        size="lg"
        aria-label={`Use the ${next} theme`}
        onClick={() => setColorScheme(next)}
      >
        {scheme === "dark" ? <IconSun size={18} /> : <IconMoon size={18} />}
      </ActionIcon>
    </Tooltip>
  );
}
