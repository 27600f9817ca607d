import { ActionIcon, Badge, Group, Text, Title, Tooltip } from "@mantine/core";
import { IconArrowsDiagonal, IconArrowsDiagonalMinimize2, IconX } from "@tabler/icons-react";
import { Problems } from "#/components/Problems";
import classes from "./builder.module.css";
import { useBuilder } from "./context";
import { PartForm } from "./PartForm";
import { PartMenu } from "./PartMenu";
import { partAt, partOfPath } from "./parts";
import { SettingsForm } from "./SettingsForm";

interface Props {
  isWide?: boolean;
  onWiden?: () => void;
}

/** The form of what is selected. */
export function Panel({ isWide, onWiden }: Props) {
  const { view, selected, select } = useBuilder();
  const part = partAt(view, selected);
  const title = part ? part.id : "Settings";
  return (
    <>
      <Group className={classes.panelHead} justify="space-between" wrap="nowrap">
        <Group gap="xs" wrap="nowrap" miw={0}>
          <Title order={2} size="h4" lineClamp={1}>
            {title}
          </Title>
          {part && part.type !== part.id && (
            <Badge variant="light" tt="none">
              {part.type}
            </Badge>
          )}
        </Group>
        <Group gap={4} wrap="nowrap">
          {part && (
            <span style={{ position: "relative", width: 26, height: 26 }}>
              <PartMenu part={part} />
            </span>
          )}
          {onWiden && (
            <Tooltip label={isWide ? "Narrower" : "Wider"}>
              <ActionIcon
                variant="subtle"
                color="gray"
                onClick={onWiden}
                aria-label={isWide ? "Narrower" : "Wider"}
              >
                {isWide ? <IconArrowsDiagonalMinimize2 size={16} /> : <IconArrowsDiagonal size={16} />}
              </ActionIcon>
            </Tooltip>
          )}
          <ActionIcon variant="subtle" color="gray" onClick={() => select(null)} aria-label="Close form">
            <IconX size={16} />
          </ActionIcon>
        </Group>
      </Group>
      <div className={classes.panelBody}>
        <Warnings />
        {part ? (
          <PartForm key={part.key} part={part} />
        ) : selected === "settings" ? (
          <SettingsForm />
        ) : (
          <Text c="dimmed">It is gone.</Text>
        )}
      </div>
    </>
  );
}

function Warnings() {
  const { check, selected } = useBuilder();
  const own = check.warnings.filter((each) => partOfPath(each.path) === selected);
  return own.length > 0 ? <Problems problems={own} level="warning" /> : null;
}
