import { Drawer, SegmentedControl } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import { lazy, Suspense, useCallback, useEffect, useState } from "react";
import { useNavigate, useSearchParams } from "react-router";
import { type Place, pageOf } from "#/api/kinds";
import { done } from "#/components/notify";
import { Loading, Page } from "#/components/Page";
import { LeaveGuard } from "#/documents/editing/LeaveGuard";
import { SaveQuestions } from "#/documents/editing/SaveQuestions";
import type { Fields } from "#/documents/editing/yaml";
import { focusPath, type JsonSchema } from "#/forms/SchemaForm";
import classes from "./builder.module.css";
import { Canvas } from "./Canvas";
import { ComponentDrawer } from "./ComponentDrawer";
import type { Catalogue } from "./catalogue";
import { type Adding, BuilderContext } from "./context";
import { LiveContext, useSamples } from "./edges/live";
import { Issues } from "./Issues";
import * as model from "./model";
import { Notices } from "./Notices";
import type { Opened } from "./opening";
import { Panel } from "./Panel";
import { partAt, partOfPath } from "./parts";
import { SaveControls } from "./SaveControls";
import { TestDock } from "./TestDock";
import { useWorkshop } from "./useWorkshop";
import { YamlView } from "./YamlView";

const TestPanel = lazy(() => import("#/testing/TestPanel"));

interface Props {
  title: string;
  place: Place;
  id: string | null;
  opened: Opened;
  catalogue: Catalogue;
  root: JsonSchema;
  onStartOver: () => void;
}

/** The canvas or the text, the form of what is selected, and all that is wrong. */
export function Workshop({ title, place, id, opened, catalogue, root, onStartOver }: Props) {
  const navigate = useNavigate();
  const [search] = useSearchParams();
  const [mode, setMode] = useState<"canvas" | "yaml">("canvas");
  const [adding, setAdding] = useState<Adding | null>(null);
  const [isTesting, setTesting] = useState(false);
  const [isWide, setWide] = useState(false);
  const isNarrow = useMediaQuery("(max-width: 62em)") ?? false;
  const showTests = useCallback(() => setTesting(true), []);
  const work = useWorkshop({
    place,
    id,
    opened,
    catalogue,
    root,
    onAdd: setAdding,
    onTests: showTests,
    onSaved: (saved) => {
      done(id === null ? `Saved ${saved.name}` : `Saved ${saved.name} as revision ${saved.revision}`);
      navigate(pageOf(saved.kind, saved.id));
    },
  });
  const samples = useSamples(place, id);
  const { builder, state } = work;
  const { selected, view } = builder;
  const hasPanel = selected === "settings" || partAt(view, selected) !== null;

  const pick = (path: string | null | undefined) => {
    setMode("canvas");
    builder.select(partOfPath(path));
    // The form has to be there before one of its fields can be found.
    setTimeout(() => focusPath(path ?? ""), 250);
  };
  // `?at=spec.processors[0].query` leads from an error on another page to its field.
  const at = search.get("at");
  // biome-ignore lint/correctness/useExhaustiveDependencies: it is the way in, and no more than that
  useEffect(() => {
    if (at) pick(at);
  }, [at]);
  const put = (part: Fields) => {
    if (adding?.role === "source") builder.edit((text) => model.setSource(text, place, part));
    else if (adding?.role === "sink") builder.edit((text) => model.addSink(text, place, part));
    else if (adding && "task" in part)
      builder.edit((text) => model.addTask(text, adding.index, String(part.task)));
    else if (adding) builder.edit((text) => model.addStep(text, place, adding.index, part));
    setAdding(null);
  };

  const tests = (
    <Suspense fallback={<Loading />}>
      <TestPanel
        document={builder.value}
        place={place}
        steps={builder.check.steps}
        selected={partAt(view, selected)?.id}
        onTested={builder.setTested}
        onPick={(path) => {
          if (isNarrow) setTesting(false);
          pick(path);
        }}
        onCases={(tests) => {
          const spec = { tests: tests.length > 0 ? tests : undefined };
          builder.edit((text) => model.setSpec(text, spec, ["tests"]));
          done("Test cases changed. Save the document to keep them");
        }}
      />
    </Suspense>
  );

  return (
    <BuilderContext value={builder}>
      <div className={classes.page}>
        <Page
          title={title}
          actions={
            <>
              <SegmentedControl
                aria-label="View"
                value={mode}
                data={[
                  { value: "canvas", label: "Canvas" },
                  { value: "yaml", label: "YAML" },
                ]}
                onChange={(next) => setMode(next as "canvas" | "yaml")}
              />
              <SaveControls
                work={work}
                onTest={() => setTesting(!isTesting)}
                onFault={() => setMode("yaml")}
              />
            </>
          }
        >
          <Notices
            work={work}
            mode={mode}
            opened={opened}
            onYaml={() => setMode("yaml")}
            onStartOver={onStartOver}
          />
          <div
            className={classes.work}
            data-panel={(hasPanel && !isNarrow && mode === "canvas") || undefined}
            data-dock={(isTesting && !isNarrow) || undefined}
            style={{ "--panel-width": isWide ? "min(860px, 60vw)" : "460px" } as object}
          >
            <div className={classes.main} data-text={mode === "yaml" || undefined}>
              {mode === "canvas" ? (
                <LiveContext value={samples}>
                  <Canvas isVertical={isNarrow} />
                </LiveContext>
              ) : (
                <YamlView text={state.history.text} fault={state.fault} onChange={work.type} />
              )}
            </div>
            <Issues text={state.goodText} onPick={(problem) => pick(problem.path)} />
            {hasPanel && !isNarrow && mode === "canvas" && (
              <aside className={classes.panel} aria-label="Form">
                <Panel isWide={isWide} onWiden={() => setWide(!isWide)} />
              </aside>
            )}
            {isTesting && !isNarrow && <TestDock onClose={() => setTesting(false)}>{tests}</TestDock>}
          </div>
          {isNarrow && (
            <Drawer.Root
              opened={hasPanel && mode === "canvas"}
              onClose={() => builder.select(null)}
              position="bottom"
              size="85%"
            >
              <Drawer.Overlay />
              <Drawer.Content aria-label="Form">
                <Panel />
              </Drawer.Content>
            </Drawer.Root>
          )}
          <ComponentDrawer adding={adding} onPick={put} onClose={() => setAdding(null)} />
          {isNarrow && (
            <Drawer
              opened={isTesting}
              onClose={() => setTesting(false)}
              position="bottom"
              size="100%"
              title="Test"
              closeButtonProps={{ "aria-label": "Close the test panel" }}
            >
              {tests}
            </Drawer>
          )}
          <SaveQuestions saving={work.saving} text={state.history.text} onRebase={work.rebase} />
          <LeaveGuard
            isChanged={work.isChanged}
            isDone={work.isDone}
            title="Unsaved changes"
            ways={[
              { label: "Discard draft", isDangerous: true, onLeave: work.discard },
              { label: "Leave and keep draft" },
            ]}
          >
            The draft stays in this browser tab until you close the tab. It is restored when you come back.
          </LeaveGuard>
        </Page>
      </div>
    </BuilderContext>
  );
}
