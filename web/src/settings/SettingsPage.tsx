import { Alert, Code, Paper, Stack, Text, Title } from "@mantine/core";
import { IconLock } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { Allowed } from "#/access/Allowed";
import { api, body, type Schemas } from "#/api/client";
import { Loading, Page } from "#/components/Page";
import { Failure, Problems } from "#/components/Problems";
import { Access } from "./Access";
import { Appearance } from "./Appearance";
import { SettingsList } from "./SettingsList";
import { Versions } from "./Versions";

/** The settings in force and where each came from; and how the app looks here. */
export default function SettingsPage() {
  return (
    <Page title="Settings">
      <Appearance />
      <Allowed needs="admin">
        <Access />
        <Server />
      </Allowed>
    </Page>
  );
}

function Server() {
  const { data, error } = useQuery({
    queryKey: ["settings"],
    queryFn: () => body(api.GET("/settings")),
    staleTime: 60_000,
  });
  return (
    <>
      <Failure error={error} title="The settings of the server could not be loaded" />
      {data === undefined ? !error && <Loading what="Loading the settings" /> : <View view={data} />}
    </>
  );
}

function View({ view }: { view: Schemas["SettingsView"] }) {
  const { settings, file, warnings, versions } = view;
  return (
    <>
      <Problems problems={warnings} title="Something about the settings looks wrong" level="warning" />
      <Paper withBorder p="md" component="section" aria-labelledby="server-settings">
        <Stack gap="md">
          <Title order={2} size="h4" id="server-settings">
            Settings of the server
          </Title>
          <HowToChange file={file} />
          <SettingsList settings={settings} />
        </Stack>
      </Paper>
      <Versions versions={versions} />
    </>
  );
}

function HowToChange({ file }: { file: string | null }) {
  return (
    <Alert variant="light" color="gray" icon={<IconLock />} title="They can be read here, but not changed">
      <Text size="sm">
        Change them in {file ? <Code>{file}</Code> : <Code>penstock.toml</Code>}, by a variable such as{" "}
        <Code>PENSTOCK_PORT=8081</Code>, or on the command line, and start the server again. The command line
        wins over variables, and variables over the file.{" "}
        {file === null &&
          "No file was read: the server looks for penstock.toml in the directory that it is started in."}
      </Text>
    </Alert>
  );
}
