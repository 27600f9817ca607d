import { Button, Code, Stack, Text, TextInput } from "@mantine/core";
import { type FormEvent, useEffect, useState } from "react";
import { Link, Navigate, useLocation, useNavigate } from "react-router";
import { userOf, useSession } from "#/api/session";
import { Failure } from "#/components/Problems";
import { useLogin } from "./api";
import { FrontPage } from "./FrontPage";
import { NewPassword, useNewPassword } from "./NewPassword";

const TITLE = "Set up Penstock";

/** Creates the first admin, with the secret of the link that `penstock up` prints. */
export default function SetupPage() {
  const session = useSession();
  const secret = useSecret();
  if (userOf(session) !== null) return <Navigate to="/" replace />;
  if (!session.setup) {
    return (
      <FrontPage title={TITLE} about="This server already has users.">
        <Button component={Link} to="/login">
          Log in
        </Button>
      </FrontPage>
    );
  }
  if (secret === null) {
    return (
      <FrontPage title={TITLE}>
        <Text size="sm">
          This server has no user yet. Open the set-up link that <Code>penstock up</Code> printed when the
          server started: it ends with a one-time secret.
        </Text>
      </FrontPage>
    );
  }
  return (
    <FrontPage
      title={TITLE}
      about="Create the first admin. From then on everybody has to log in; an admin adds more users."
    >
      <FirstAdmin secret={secret} />
    </FrontPage>
  );
}

/** The secret behind the # of the address, which is then taken out of it: it must not stay in the history. */
function useSecret(): string | null {
  const { hash } = useLocation();
  const navigate = useNavigate();
  const [secret, setSecret] = useState<string | null>(null);
  const found = hash.slice(1);
  useEffect(() => {
    if (found === "") return;
    setSecret(found);
    void navigate("/setup", { replace: true });
  }, [found, navigate]);
  return secret ?? (found || null);
}

function FirstAdmin({ secret }: { secret: string }) {
  const login = useLogin();
  const [name, setName] = useState("");
  const password = useNewPassword();
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (password.check()) login.mutate({ secret, name: name.trim(), password: password.value });
  };
  return (
    <Stack component="form" onSubmit={submit} gap="sm">
      <TextInput
        label="Name"
        name="username"
        autoComplete="username"
        autoCapitalize="none"
        spellCheck={false}
        required
        autoFocus
        value={name}
        onChange={({ currentTarget }) => setName(currentTarget.value)}
      />
      <NewPassword label="Password" password={password} />
      <Failure error={login.error} />
      <Button type="submit" loading={login.isPending}>
        Create the admin
      </Button>
    </Stack>
  );
}
