import { ActionIcon, Menu } from "@mantine/core";
import {
  IconArrowLeft,
  IconArrowRight,
  IconCopy,
  IconDotsVertical,
  IconPlus,
  IconTrash,
} from "@tabler/icons-react";
import classes from "./builder.module.css";
import { useBuilder } from "./context";
import type { Part } from "./parts";

/** What can be done with a part. */
export function PartMenu({ part }: { part: Part }) {
  const { view, add, move, duplicate, remove, place } = useBuilder();
  const { group, index } = part;
  const count = group === "sink" ? view.sinks.length : view.steps.length;
  if (group === "source") {
    return (
      <Dots part={part}>
        <Menu.Item leftSection={<IconPlus size={14} />} onClick={() => add({ role: "processor", index: 0 })}>
          Add a step after this
        </Menu.Item>
        {place === "pipelines" && (
          <Menu.Item leftSection={<IconCopy size={14} />} onClick={() => add({ role: "source" })}>
            Change the input
          </Menu.Item>
        )}
      </Dots>
    );
  }
  return (
    <Dots part={part}>
      {group === "step" && (
        <Menu.Item
          leftSection={<IconPlus size={14} />}
          onClick={() => add({ role: "processor", index: index + 1 })}
        >
          Add a step after this
        </Menu.Item>
      )}
      <Menu.Item
        leftSection={<IconArrowLeft size={14} />}
        rightSection="Alt ←"
        disabled={index === 0}
        onClick={() => move(group, index, index - 1)}
      >
        Move earlier
      </Menu.Item>
      <Menu.Item
        leftSection={<IconArrowRight size={14} />}
        rightSection="Alt →"
        disabled={index === count - 1}
        onClick={() => move(group, index, index + 1)}
      >
        Move later
      </Menu.Item>
      <Menu.Item leftSection={<IconCopy size={14} />} onClick={() => duplicate(part)}>
        Duplicate
      </Menu.Item>
      <Menu.Item
        leftSection={<IconTrash size={14} />}
        rightSection="Del"
        color="red"
        onClick={() => remove(part)}
      >
        Remove
      </Menu.Item>
    </Dots>
  );
}

function Dots({ part, children }: { part: Part; children: React.ReactNode }) {
  return (
    <Menu position="bottom-end" withinPortal shadow="md">
      <Menu.Target>
        <ActionIcon
          className={`${classes.dots} nodrag`}
          variant="subtle"
          color="gray"
          size="sm"
          aria-label={`Actions for ${part.id}`}
        >
          <IconDotsVertical size={14} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>{children}</Menu.Dropdown>
    </Menu>
  );
}
