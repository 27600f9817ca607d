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
import { plural } from "#/components/format";
import { type Case, caseOf, finalOf, freeName, inputOf, isRouted, type Tested, type Way } from "./cases";
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
        Save as test case
      </Button>
      <Modal
        opened={isOpen}
        onClose={() => setOpen(false)}
        title="Save as test case"
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
          description="The behavior under test, such as: unpaid orders are left out"
          value={name}
          onChange={({ currentTarget }) => setName(currentTarget.value)}
          required
          data-autofocus
        />
        <Radio.Group
          label={`Expected output of the last step (${plural(output.length, "event")})`}
          value={way}
          onChange={(next) => setWay(next as Way)}
        >
          <Stack gap={6} mt={6}>
            <Radio value="exactly" label="Exactly these events" />
            <Radio
              value="fields"
              label="Only some fields"
              description="For timestamps and random values, which differ in each run"
            />
            <Radio value="count" label="Only the number of events" />
          </Stack>
        </Radio.Group>
        {way === "fields" && (
          <MultiSelect label="Fields to compare" data={names} value={fields} onChange={setFields} />
        )}
        {Object.keys(tested.output).length > 0 && (
          <Checkbox
            label="Also compare the events of each sink"
            checked={sinks}
            onChange={({ currentTarget }) => setSinks(currentTarget.checked)}
          />
        )}
        {isDropping && (
          <Checkbox
            label="Also compare the number of events each step drops"
            checked={dropped}
            onChange={({ currentTarget }) => setDropped(currentTarget.checked)}
          />
        )}
        {failures.length > 0 && (
          <Text size="sm" c="dimmed">
            The test also expects the {plural(failures.length, "error")} of this run.
          </Text>
        )}
        {replaced && (
          <Alert color="yellow" variant="light">
            A test case with this name exists and will be replaced.
          </Alert>
        )}
        <Group justify="flex-end">
          <Button type="submit" disabled={name.trim() === ""}>
            {replaced ? "Replace test case" : "Save test case"}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
