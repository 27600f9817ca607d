import { lazy } from "react";
import { createBrowserRouter, type RouteObject } from "react-router";
import { Broken, NotFound } from "./Broken";
import { Shell } from "./Shell";

const Overview = lazy(() => import("#/overview/OverviewPage"));
const Topology = lazy(() => import("#/topology/TopologyPage"));
const Documents = lazy(() => import("#/documents/DocumentsPage"));
const StreamForm = lazy(() => import("#/streams/StreamFormPage"));
const StreamPage = lazy(() => import("#/streams/StreamPage"));
const EndForm = lazy(() => import("#/documents/EndFormPage"));
const Builder = lazy(() => import("#/builder/BuilderPage"));
const FlowPage = lazy(() => import("#/flows/FlowPage"));
const Workers = lazy(() => import("#/workers/WorkersPage"));
const Settings = lazy(() => import("#/settings/SettingsPage"));

// `/new?clone=ID` begins with a copy; `/:id/edit` edits. All pages know their kind by the first part.
const routes: RouteObject[] = [
  { index: true, element: <Overview /> },
  { path: "topology", element: <Topology /> },
  { path: "pipelines", element: <Documents place="pipelines" /> },
  { path: "pipelines/new", element: <Builder place="pipelines" /> },
  { path: "pipelines/:id", element: <FlowPage place="pipelines" /> },
  { path: "pipelines/:id/edit", element: <Builder place="pipelines" /> },
  { path: "streams", element: <Documents place="streams" /> },
  { path: "streams/new", element: <StreamForm /> },
  { path: "streams/:id", element: <StreamPage /> },
  { path: "streams/:id/edit", element: <StreamForm /> },
  { path: "tasks", element: <Documents place="tasks" /> },
  { path: "tasks/new", element: <Builder place="tasks" /> },
  { path: "tasks/:id", element: <FlowPage place="tasks" /> },
  { path: "tasks/:id/edit", element: <Builder place="tasks" /> },
  { path: "sources", element: <Documents place="sources" /> },
  { path: "sources/new", element: <EndForm place="sources" /> },
  { path: "sources/:id", element: <FlowPage place="sources" /> },
  { path: "sources/:id/edit", element: <EndForm place="sources" /> },
  { path: "sinks", element: <Documents place="sinks" /> },
  { path: "sinks/new", element: <EndForm place="sinks" /> },
  { path: "sinks/:id", element: <FlowPage place="sinks" /> },
  { path: "sinks/:id/edit", element: <EndForm place="sinks" /> },
  { path: "workers", element: <Workers /> },
  { path: "settings", element: <Settings /> },
  { path: "*", element: <NotFound /> },
];

export const router = createBrowserRouter(
  [{ path: "/", element: <Shell />, children: [{ errorElement: <Broken />, children: routes }] }],
  { basename: "/ui" },
);
