import { Alert, Button, Group, SegmentedControl, Text } from "@mantine/core";
import { useHotkeys } from "@mantine/hooks";
import { IconDeviceFloppy } from "@tabler/icons-react";
import { type ReactNode, useEffect, useState } from "react";
import { Link } from "react-router";
import { pageOf } from "#/api/kinds";
import { plural } from "#/components/format";
import { Page } from "#/components/Page";
import { Problems } from "#/components/Problems";
import { focusPath } from "#/forms/SchemaForm";
import { LeaveGuard } from "./LeaveGuard";
import { SaveQuestions } from "./SaveQuestions";
import type { Editing } from "./useEditing";
import { YamlPane } from "./YamlPane";

interface Props {
  editing: Editing;
  title: string;
  about: ReactNode;
  children: ReactNode;
}

type View = "form" | "yaml";

/** Around a form: its two views, what is wrong, and how it is saved. */
export function EditFrame({ editing, title, about, children }: Props) {
  const { kind, id, saving, opinion, problems, fault } = editing;
  const [view, setView] = useState<View>("form");
  const { submit } = editing;
  useHotkeys([["mod+S", submit]], []);
  const first = saving.refused?.[0]?.path;
  useEffect(() => {
    if (first) focusPath(first);
  }, [first]);
  const elsewhere = problems.filter(({ path }) => !/^(metadata|spec)\b/.test(path ?? ""));
  return (
    <Page
      title={title}
      about={about}
      actions={
        <>
          <State editing={editing} />
          <SegmentedControl
            size="sm"
            aria-label="View"
            data={[
              { value: "form", label: "Form" },
              { value: "yaml", label: "YAML" },
            ]}
            value={view}
            onChange={(next) => setView(next as View)}
          />
          <Button
            component={Link}
            to={id === null ? `/${kind.place}` : pageOf(kind.name, id)}
            variant="default"
          >
            Cancel
          </Button>
          <Button
            leftSection={<IconDeviceFloppy size={16} />}
            loading={saving.isSaving}
            disabled={fault !== null || (id !== null && !editing.isChanged)}
            onClick={submit}
          >
            {id === null ? "Create" : "Save"}
          </Button>
        </>
      }
    >
      <Problems problems={elsewhere} title="This can't be saved" />
      <Problems problems={opinion.warnings} level="warning" />
      {view === "yaml" && <YamlPane editing={editing} />}
      {view === "form" && fault && (
        <Alert color="yellow" title="The YAML can't be parsed">
          <Group justify="space-between">
            <Text size="sm">
              {fault.message} (line {fault.line}). The form shows what it said before.
            </Text>
            <Button size="compact-sm" variant="default" onClick={() => setView("yaml")}>
              Fix the YAML
            </Button>
          </Group>
        </Alert>
      )}
      {view === "form" && children}
      <SaveQuestions saving={saving} text={editing.text} onRebase={editing.rebase} />
      <LeaveGuard
        isChanged={editing.isChanged}
        isDone={editing.isDone}
        title="Leave without saving?"
        ways={[{ label: "Leave" }]}
      >
        Your changes on this page will be lost.
      </LeaveGuard>
    </Page>
  );
}

/** Whether it is fine as it is now: in words, and told to those who do not see it. */
function State({ editing: { opinion, problems, isChanged, id } }: { editing: Editing }) {
  const count = problems.length;
  const text = opinion.isChecking
    ? "Checking…"
    : count > 0
      ? plural(count, "problem")
      : opinion.isValid
        ? isChanged || id === null
          ? "Valid"
          : "No changes"
        : "Incomplete";
  return (
    <Text size="sm" c={count > 0 && !opinion.isChecking ? "red" : "dimmed"} role="status">
      {text}
    </Text>
  );
}
