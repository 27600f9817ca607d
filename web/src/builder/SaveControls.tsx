import { ActionIcon, Button, Group, Select, Text, Tooltip } from "@mantine/core";
import { IconAdjustments, IconArrowBackUp, IconArrowForwardUp, IconFlask } from "@tabler/icons-react";
import { useCallback, useState } from "react";
import { useBuilder } from "./context";
import { setStatus } from "./model";
import { NameDialog } from "./NameDialog";
import { partOfPath } from "./parts";
import type { Work } from "./useWorkshop";

interface Props {
  work: Work;
  onTest: () => void;
  /** The text is broken: show it. */
  onFault: () => void;
}

/** Undo, redo, settings, test, what it should do once it is saved, and save. */
export function SaveControls({ work, onTest, onFault }: Props) {
  const { check, select, selected, id } = useBuilder();
  const { state, saving, isChanged } = work;
  const [isNaming, setNaming] = useState(false);
  const save = () => {
    if (state.fault) onFault();
    else if (id === null) setNaming(true);
    // What is known to be wrong has no plan: the server refuses it in place, or saves it as paused.
    else if (check.isChecking || check.errors.length === 0) saving.ask({ about: "plan" });
    else void saving.apply();
  };
  const closeNaming = useCallback(() => setNaming(false), []);
  const settings = check.errors.filter((each) => partOfPath(each.path) === "settings");
  return (
    <>
      <Group gap={4}>
        <Tooltip label="Undo (Ctrl Z)">
          <ActionIcon
            variant="default"
            size="lg"
            aria-label="Undo"
            disabled={state.history.past.length === 0}
            onClick={work.undo}
          >
            <IconArrowBackUp size={18} />
          </ActionIcon>
        </Tooltip>
        <Tooltip label="Redo (Ctrl Shift Z)">
          <ActionIcon
            variant="default"
            size="lg"
            aria-label="Redo"
            disabled={state.history.future.length === 0}
            onClick={work.redo}
          >
            <IconArrowForwardUp size={18} />
          </ActionIcon>
        </Tooltip>
      </Group>
      <Button
        variant={selected === "settings" ? "light" : "default"}
        leftSection={<IconAdjustments size={16} />}
        onClick={() => select(selected === "settings" ? null : "settings")}
      >
        Settings
        {settings.length > 0 && (
          <Text span size="xs" c="var(--mantine-color-error)" ml={6} fw={700}>
            {settings.length}
          </Text>
        )}
      </Button>
      <Button
        variant="default"
        leftSection={<IconFlask size={16} />}
        onClick={onTest}
        disabled={state.fault !== null}
      >
        Test
      </Button>
      <StatusChoice />
      <Tooltip
        label={
          isChanged ? "Unsaved changes; the draft is kept in this tab and survives a reload" : "No changes"
        }
      >
        <Button onClick={save} loading={saving.isSaving} disabled={id !== null && !isChanged}>
          {id === null ? "Save" : "Review and save"}
        </Button>
      </Tooltip>
      {isNaming && <NameDialog work={work} onClose={closeNaming} />}
    </>
  );
}

/** Whether it should run once it is saved. */
function StatusChoice() {
  const { value, edit, saved, isStale, id } = useBuilder();
  const now = id === null ? null : saved;
  const data = [
    ...(now ? [{ value: "", label: `keep status (${now})` }] : []),
    { value: "active", label: "as active" },
    { value: "paused", label: "as paused" },
    ...(value.status === "stopped" ? [{ value: "stopped", label: "as stopped" }] : []),
  ];
  return (
    <Select
      aria-label="Status after saving"
      w={200}
      allowDeselect={false}
      disabled={isStale}
      data={data}
      value={value.status ?? (now ? "" : "active")}
      onChange={(status) => edit((text) => setStatus(text, status || null))}
    />
  );
}
