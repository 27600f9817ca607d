import { lazy, type ReactNode } from "react";
import { createBrowserRouter, type RouteObject } from "react-router";
import { AllowedPage } from "#/access/Allowed";
import { Entrance, Gate } from "#/access/Gate";
import { Broken, NotFound } from "./Broken";
import { Shell } from "./Shell";

const Overview = lazy(() => import("#/overview/OverviewPage"));
const Topology = lazy(() => import("#/topology/TopologyPage"));
const Documents = lazy(() => import("#/documents/DocumentsPage"));
const StreamForm = lazy(() => import("#/streams/StreamFormPage"));
const StreamPage = lazy(() => import("#/streams/StreamPage"));
const Console = lazy(() => import("#/console/ConsolePage"));
const EndForm = lazy(() => import("#/documents/EndFormPage"));
const Builder = lazy(() => import("#/builder/BuilderPage"));
const FlowPage = lazy(() => import("#/flows/FlowPage"));
const Logs = lazy(() => import("#/logs/LogsPage"));
const Workers = lazy(() => import("#/workers/WorkersPage"));
const Settings = lazy(() => import("#/settings/SettingsPage"));
const Secrets = lazy(() => import("#/secrets/SecretsPage"));
const Login = lazy(() => import("#/access/LoginPage"));
const Setup = lazy(() => import("#/access/SetupPage"));
const Users = lazy(() => import("#/access/UsersPage"));
const Tokens = lazy(() => import("#/access/TokensPage"));
const Audit = lazy(() => import("#/access/AuditPage"));

const editor = (page: ReactNode) => <AllowedPage needs="editor">{page}</AllowedPage>;
const operator = (page: ReactNode) => <AllowedPage needs="operator">{page}</AllowedPage>;
const admin = (page: ReactNode) => <AllowedPage needs="admin">{page}</AllowedPage>;

// `/new?clone=ID` begins with a copy; `/:id/edit` edits. All pages know their kind by the first part.
const routes: RouteObject[] = [
  { index: true, element: <Overview /> },
  { path: "topology", element: <Topology /> },
  { path: "pipelines", element: <Documents place="pipelines" /> },
  { path: "pipelines/new", element: editor(<Builder place="pipelines" />) },
  { path: "pipelines/:id", element: <FlowPage place="pipelines" /> },
  { path: "pipelines/:id/edit", element: editor(<Builder place="pipelines" />) },
  { path: "streams", element: <Documents place="streams" /> },
  { path: "streams/new", element: editor(<StreamForm />) },
  { path: "streams/:id", element: <StreamPage /> },
  { path: "streams/:id/edit", element: editor(<StreamForm />) },
  { path: "sql", element: operator(<Console />) },
  { path: "tasks", element: <Documents place="tasks" /> },
  { path: "tasks/new", element: editor(<Builder place="tasks" />) },
  { path: "tasks/:id", element: <FlowPage place="tasks" /> },
  { path: "tasks/:id/edit", element: editor(<Builder place="tasks" />) },
  { path: "sources", element: <Documents place="sources" /> },
  { path: "sources/new", element: editor(<EndForm place="sources" />) },
  { path: "sources/:id", element: <FlowPage place="sources" /> },
  { path: "sources/:id/edit", element: editor(<EndForm place="sources" />) },
  { path: "sinks", element: <Documents place="sinks" /> },
  { path: "sinks/new", element: editor(<EndForm place="sinks" />) },
  { path: "sinks/:id", element: <FlowPage place="sinks" /> },
  { path: "sinks/:id/edit", element: editor(<EndForm place="sinks" />) },
  { path: "secrets", element: <Secrets /> },
  { path: "logs", element: <Logs /> },
  { path: "workers", element: <Workers /> },
  { path: "settings", element: <Settings /> },
  { path: "users", element: admin(<Users />) },
  { path: "tokens", element: <Tokens /> },
  { path: "audit", element: admin(<Audit />) },
  { path: "*", element: <NotFound /> },
];

const inside: RouteObject[] = [
  { element: <Shell />, children: [{ errorElement: <Broken />, children: routes }] },
];

export const router = createBrowserRouter(
  [
    {
      element: <Entrance />,
      children: [
        { path: "login", element: <Login /> },
        { path: "setup", element: <Setup /> },
        { path: "/", element: <Gate />, children: inside },
      ],
    },
  ],
  { basename: "/ui" },
);
