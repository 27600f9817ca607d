import { Modal, Text, useComputedColorScheme, useMantineColorScheme, VisuallyHidden } from "@mantine/core";
import { useDebouncedValue, useLocalStorage } from "@mantine/hooks";
import { createSpotlight, Spotlight, useSpotlight } from "@mantine/spotlight";
import { IconSearch } from "@tabler/icons-react";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { useNavigate } from "react-router";
import type { Role } from "#/access/types";
import { api, body } from "#/api/client";
import { useVerb } from "#/api/documents";
import { type AnyDocument, KIND_LIST, KINDS, type Kind } from "#/api/kinds";
import { includes, useAllowed, userOf, useSession } from "#/api/session";
import { capital, plural } from "#/components/format";
import { done, failed } from "#/components/notify";
import { VERBS } from "#/flows/useControls";
import {
  asked,
  type Command,
  commandsFor,
  type Deed,
  grouped,
  matches,
  neededAt,
  placeOf,
  type Recent,
  remembered,
} from "./commands";
import classes from "./palette.module.css";

const [store, palette] = createSpotlight();
const RECENT = { key: "penstock.recent", defaultValue: [] as Recent[] };

/** Documents of a kind that are shown at once; who looks for another one types more of its name. */
const SHOWN = 6;

const LIST = "palette-commands";

/** What a role can try beside names. */
const HINTS: Record<Role, string> = {
  viewer: "",
  operator: " Try: pause, resume, stop, start, restart, test.",
  editor: " Try: pause, resume, stop, start, restart, edit, test.",
  admin: " Try: pause, resume, stop, start, restart, edit, test.",
};

/** Mantine chooses the first command when a letter is typed; what is found later has to be chosen here. */
function chooseFirst(): void {
  const commands = document.querySelectorAll(`#${LIST} [data-action]`);
  for (const command of commands) command.removeAttribute("data-selected");
  commands[0]?.setAttribute("data-selected", "true");
  store.updateState((state) => ({ ...state, selected: 0 }));
}

export const openPalette = () => palette.open();

/** Ctrl-K: go anywhere, do anything. */
export function Palette() {
  const [query, setQuery] = useState("");
  const canAct = useAllowed("operator");
  return (
    <Spotlight.Root
      store={store}
      classNames={{ actionDescription: classes.about }}
      query={query}
      onQueryChange={setQuery}
      shortcut={["mod + K", "mod + P"]}
      tagsToIgnore={[]}
      triggerOnContentEditable
      scrollable
      maxHeight={480}
      clearQueryOnClose
      transitionProps={{ duration: 0 }}
    >
      <VisuallyHidden>
        <Modal.Title>Search and commands</Modal.Title>
      </VisuallyHidden>
      <Spotlight.Search
        placeholder={
          canAct
            ? "Find a page or document, or type a command such as: pause orders"
            : "Find a page or document"
        }
        aria-label="Search and commands"
        leftSection={<IconSearch size={18} stroke={1.6} />}
      />
      <Commands query={query} />
    </Spotlight.Root>
  );
}

function Commands({ query }: { query: string }) {
  const { opened } = useSpotlight(store);
  const { deeds, rest } = asked(query);
  const found = useFound(rest, opened && rest !== "");
  const [recent, setRecent] = useLocalStorage(RECENT);
  const act = useDeeds();
  const navigate = useNavigate();
  const session = useSession();
  const role = userOf(session)?.role ?? "viewer";
  const fixed = useFixed(session.authentication === "on").filter(
    ({ to }) => !to || includes(role, neededAt(to)),
  );
  const usable = recent.filter(({ to }) => includes(role, neededAt(to)));
  const lately = usable.map((each) => ({ ...each, group: "Recent", run: () => navigate(each.to) }));
  const groups = query.trim()
    ? grouped(
        [
          ...fixed.filter((each) => matches(each, query.trim())),
          ...commandsFor(found.documents, deeds, role, act),
        ],
        recent.map(({ id }) => id),
      )
    : grouped([...lately, ...fixed], []);
  const shown = groups.flatMap(([, commands]) => commands.map(({ id }) => id)).join();
  // biome-ignore lint/correctness/useExhaustiveDependencies: Enter means the first of what is shown, also when it came late
  useEffect(chooseFirst, [shown]);
  const run = (command: Command) => {
    setRecent(remembered(recent, command));
    command.run();
  };
  return (
    <>
      <Spotlight.ActionsList id={LIST}>
        {groups.map(([group, commands]) => (
          <Spotlight.ActionsGroup key={group} label={group}>
            {commands.map((command) => (
              <Spotlight.Action
                key={command.id}
                label={command.label}
                description={command.about}
                onClick={() => run(command)}
              />
            ))}
          </Spotlight.ActionsGroup>
        ))}
        {groups.length === 0 && (
          <Spotlight.Empty>{found.isLooking ? "Searching…" : "No matches."}</Spotlight.Empty>
        )}
      </Spotlight.ActionsList>
      <Spotlight.Footer>
        <Text size="xs" c="dimmed" role="status" visibleFrom={found.more > 0 ? undefined : "sm"}>
          {found.more > 0
            ? `${plural(found.more, "more document")}: type more of the name to narrow the list.`
            : `Use the arrow keys to select, Enter to run, Escape to close.${HINTS[role]}`}
        </Text>
      </Spotlight.Footer>
    </>
  );
}

interface Found {
  documents: AnyDocument[];
  more: number;
  isLooking: boolean;
}

/** The documents whose name, id or description has the text in it. */
function useFound(text: string, enabled: boolean): Found {
  const [settled] = useDebouncedValue(text, 120);
  const { data, isFetching } = useQuery({
    queryKey: ["palette", settled],
    queryFn: ({ signal }) => Promise.all(KIND_LIST.map((kind) => look(kind, settled, signal))),
    enabled: enabled && settled !== "",
    placeholderData: keepPreviousData,
    staleTime: 0,
  });
  const documents = (data ?? []).flatMap((page) => page.items);
  const total = (data ?? []).reduce((sum, page) => sum + page.total, 0);
  return { documents, more: total - documents.length, isLooking: isFetching || settled !== text };
}

async function look(kind: Kind, search: string, signal: AbortSignal) {
  const path = `/${kind.place}` as "/pipelines";
  // A word may also be the kind: `stream` or `stream orders`.
  const [first = "", ...others] = search.split(/\s+/);
  const isKind = first.length > 2 && kind.place.startsWith(first.toLowerCase());
  const query = { search: isKind ? others.join(" ") : search, limit: SHOWN };
  const page = await body(api.GET(path, { params: { query }, signal }));
  return {
    total: page.total,
    items: page.items.map((each) => ({ ...each, kind: kind.name }) as AnyDocument),
  };
}

function useDeeds(): (deed: Deed, document: AnyDocument) => void {
  const navigate = useNavigate();
  const verb = useVerb();
  return (deed, document) => {
    if (deed === "open" || deed === "edit" || deed === "test") {
      navigate(placeOf(deed, document)!);
      return;
    }
    const kind = KINDS[document.kind];
    verb.mutate(
      { kind, id: document.id, verb: deed },
      {
        onSuccess: () => done(`${capital(kind.one)} ${document.name} ${VERBS[deed].done}.`),
        onError: (error) => failed(`Could not ${deed} ${document.name}`, error),
      },
    );
  };
}

/** What is always there: pages, what can be created, the theme. */
function useFixed(hasUsers: boolean): Command[] {
  const navigate = useNavigate();
  const { setColorScheme } = useMantineColorScheme();
  const scheme = useComputedColorScheme("light") === "dark" ? "light" : "dark";
  const page = (label: string, to: string, about?: string): Command => ({
    id: to,
    group: "Pages",
    label,
    about,
    to,
    run: () => navigate(to),
  });
  const access = [
    page("Users", "/users", "Who can log in, and their roles"),
    page("Tokens", "/tokens", "Tokens of programs"),
    page("Audit log", "/audit", "Who has changed what"),
  ];
  return [
    page("Overview", "/", "Health of the installation, and what needs attention"),
    page("Topology", "/topology", "Data flow between documents"),
    ...KIND_LIST.map((kind) => page(kind.title, `/${kind.place}`, kind.about)),
    page("SQL console", "/sql", "Query streams with SQL"),
    page("Secrets", "/secrets", "Passwords and keys that documents use"),
    page("Workers", "/workers", "Processes that run the flows"),
    page("Settings", "/settings", "Effective settings and versions"),
    ...(hasUsers ? access : []),
    ...KIND_LIST.map((kind) => ({
      ...page(`Create a ${kind.one}`, `/${kind.place}/new`),
      group: "Actions",
    })),
    {
      id: "theme",
      group: "Actions",
      label: `Use the ${scheme} theme`,
      run: () => setColorScheme(scheme),
    },
  ];
}
