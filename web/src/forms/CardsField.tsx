import { ActionIcon, Button, Group, Input, Paper, Text } from "@mantine/core";
import { IconArrowDown, IconArrowUp, IconPlus, IconTrash } from "@tabler/icons-react";
import { useRef } from "react";
import { FieldView } from "./FieldView";
import classes from "./forms.module.css";
import { useShown } from "./inputs";
import { below, problemsLeft, sentence } from "./paths";
import { fieldOf, seed } from "./schema";
import { type FieldProps, useForm } from "./state";

/** A list of things that have fields of their own: a card for each. */
export function CardsField(props: FieldProps) {
  const { label: title, description, withAsterisk, readOnly } = useShown(props);
  const { label } = props;
  const { root, problems } = useForm();
  const items = Array.isArray(props.value) ? (props.value as unknown[]) : [];
  const keys = useKeys(items.length);
  const schema = props.field.schema.items!;
  const change = (next: unknown[]) => props.onChange(next.length === 0 ? undefined : next);
  const move = (place: number, to: number) => {
    keys.move(place, to);
    const next = [...items];
    next.splice(to, 0, ...next.splice(place, 1));
    change(next);
  };
  const own = problemsLeft(
    problems,
    props.path,
    items.map((_, place) => below(props.path, place)),
  );
  return (
    <Input.Wrapper
      label={title}
      description={description}
      error={sentence(own)}
      withAsterisk={withAsterisk}
      labelElement="div"
    >
      <div className={classes.rows}>
        {items.map((item, place) => (
          <Paper key={keys.at(place)} withBorder p="sm">
            <Group justify="space-between" mb={4}>
              <Text size="sm" fw={600}>
                {place + 1}
              </Text>
              {!readOnly && (
                <Group gap={2}>
                  <CardButton
                    label={`Move ${label} ${place + 1} up`}
                    icon={<IconArrowUp size={16} />}
                    disabled={place === 0}
                    onClick={() => move(place, place - 1)}
                  />
                  <CardButton
                    label={`Move ${label} ${place + 1} down`}
                    icon={<IconArrowDown size={16} />}
                    disabled={place === items.length - 1}
                    onClick={() => move(place, place + 1)}
                  />
                  <CardButton
                    label={`Remove ${label} ${place + 1}`}
                    icon={<IconTrash size={16} />}
                    onClick={() => {
                      keys.remove(place);
                      change(items.filter((_, other) => other !== place));
                    }}
                  />
                </Group>
              )}
            </Group>
            <FieldView
              name={props.name}
              label={`${label} ${place + 1}`}
              isBare
              field={fieldOf(schema, root)}
              value={item}
              path={below(props.path, place)}
              required
              onChange={(next) => change(items.with(place, next ?? seed(schema, root)))}
            />
          </Paper>
        ))}
        {!readOnly && (
          <Button
            variant="default"
            size="compact-sm"
            w="fit-content"
            leftSection={<IconPlus size={14} />}
            aria-label={`Add to ${label}`}
            onClick={() => change([...items, seed(schema, root) ?? {}])}
          >
            Add
          </Button>
        )}
      </div>
    </Input.Wrapper>
  );
}

interface ButtonProps {
  label: string;
  icon: React.ReactNode;
  disabled?: boolean;
  onClick: () => void;
}

function CardButton({ label, icon, disabled, onClick }: ButtonProps) {
  return (
    <ActionIcon variant="subtle" color="gray" aria-label={label} disabled={disabled} onClick={onClick}>
      {icon}
    </ActionIcon>
  );
}

// A card that moves takes its cursor and its drafts along.
function useKeys(length: number) {
  const keys = useRef<number[]>([]);
  const next = useRef(0);
  while (keys.current.length < length) keys.current.push(next.current++);
  keys.current.length = length;
  return {
    at: (place: number) => keys.current[place]!,
    move: (place: number, to: number) => keys.current.splice(to, 0, ...keys.current.splice(place, 1)),
    remove: (place: number) => keys.current.splice(place, 1),
  };
}
