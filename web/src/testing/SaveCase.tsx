import {
  Alert,
  Button,
  Checkbox,
  Group,
  Modal,
  MultiSelect,
  Radio,
  Stack,
  Text,
  TextInput,
} from "@mantine/core";
import { useState } from "react";
import {
  type Case,
  caseOf,
  finalOf,
  freeName,
  inputOf,
  isRouted,
  some,
  type Tested,
  type Way,
} from "./cases";
import { META } from "./trace";
import type { Asked } from "./useTestRun";

interface Props {
  tested: Tested;
  asked: Asked;
  cases: readonly Case[];
  onSave: (testCase: Case) => void;
}

/** Makes a test of a run: what has just come out is what is expected from now on. */
export function SaveCase(props: Props) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button variant="default" size="compact-sm" onClick={() => setOpen(true)} disabled={!props.tested.ok}>
        Save as a test case
      </Button>
      <Modal
        opened={isOpen}
        onClose={() => setOpen(false)}
        title="Save as a test case"
        closeButtonProps={{ "aria-label": "Close" }}
      >
        <Form
          {...props}
          onSave={(testCase) => {
            setOpen(false);
            props.onSave(testCase);
          }}
        />
      </Modal>
    </>
  );
}

function Form({ tested, asked, cases, onSave }: Props) {
  const output = finalOf(tested);
  const names = [...new Set(output.flatMap((event) => Object.keys(event)))].filter((name) => name !== META);
  const failures = tested.steps.flatMap((step) => step.errors);
  const isDropping = tested.steps.some((step) => step.dropped > 0);
  const [name, setName] = useState(() => freeName(cases));
  const [way, setWay] = useState<Way>("exactly");
  const [fields, setFields] = useState(names);
  const [sinks, setSinks] = useState(isRouted(tested));
  const [dropped, setDropped] = useState(isDropping);
  const replaced = cases.some((each) => each.name === name.trim());
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        event.stopPropagation(); // a portal still bubbles to the form around it
        const input = "events" in asked ? asked.events : inputOf(tested);
        onSave(caseOf({ name: name.trim(), way, fields, sinks, dropped }, input, asked.given, tested));
      }}
    >
      <Stack gap="sm">
        <TextInput
          label="Name"
          description="What it shows, such as: unpaid orders are left out"
          value={name}
          onChange={({ currentTarget }) => setName(currentTarget.value)}
          required
          data-autofocus
        />
        <Radio.Group
          label={`Expect of the ${some(output.length, "event")} that leave the last step`}
          value={way}
          onChange={(next) => setWay(next as Way)}
        >
          <Stack gap={6} mt={6}>
            <Radio value="exactly" label="exactly these events" />
            <Radio
              value="fields"
              label="only some of their fields"
              description="For times and random values, which are others in each run"
            />
            <Radio value="count" label="only how many they are" />
          </Stack>
        </Radio.Group>
        {way === "fields" && (
          <MultiSelect label="Fields that are compared" data={names} value={fields} onChange={setFields} />
        )}
        {Object.keys(tested.output).length > 0 && (
          <Checkbox
            label="and what each sink gets"
            checked={sinks}
            onChange={({ currentTarget }) => setSinks(currentTarget.checked)}
          />
        )}
        {isDropping && (
          <Checkbox
            label="and how many events each step drops"
            checked={dropped}
            onChange={({ currentTarget }) => setDropped(currentTarget.checked)}
          />
        )}
        {failures.length > 0 && (
          <Text size="sm" c="dimmed">
            It expects the {some(failures.length, "error")} of this run, too.
          </Text>
        )}
        {replaced && (
          <Alert color="yellow" variant="light">
            There is a test case of this name: this one takes its place.
          </Alert>
        )}
        <Group justify="flex-end">
          <Button type="submit" disabled={name.trim() === ""}>
            {replaced ? "Replace the test case" : "Save the test case"}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
