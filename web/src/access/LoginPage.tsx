import { Alert, Button, Divider, PasswordInput, Stack, TextInput } from "@mantine/core";
import { IconAlertTriangle } from "@tabler/icons-react";
import { type FormEvent, useRef, useState } from "react";
import { Navigate, useSearchParams } from "react-router";
import { ApiError } from "#/api/client";
import { userOf, useSession } from "#/api/session";
import { duration } from "#/components/format";
import { Failure } from "#/components/Problems";
import { useLogin } from "./api";
import { FrontPage } from "./FrontPage";
import { keepReturn, nextOf } from "./places";
import { useCountdown } from "./useCountdown";

/** Where somebody says who they are; afterwards the page that led here is shown. */
export default function LoginPage() {
  const session = useSession();
  const [search] = useSearchParams();
  const next = nextOf(search);
  if (userOf(session) !== null) return <Navigate to={next} replace />;
  if (session.setup) return <Navigate to="/setup" replace />;
  const { oidc } = session;
  return (
    <FrontPage title="Log in">
      <Refused code={search.get("error")} />
      <PasswordForm />
      {oidc && (
        <>
          <Divider label="or" />
          <Button component="a" href="/session/oidc" variant="default" onClick={() => keepReturn(next)}>
            Log in with {oidc.label}
          </Button>
        </>
      )}
    </FrontPage>
  );
}

function PasswordForm() {
  const login = useLogin();
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");
  const field = useRef<HTMLInputElement>(null);
  const [locked, lock] = useCountdown();
  const submit = (event: FormEvent) => {
    event.preventDefault();
    login.mutate(
      { name: name.trim(), password },
      {
        onError: (error) => {
          if (error instanceof ApiError && error.retryAfter !== null) lock(error.retryAfter);
          setPassword("");
          field.current?.focus();
        },
      },
    );
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
      <PasswordInput
        ref={field}
        label="Password"
        name="password"
        autoComplete="current-password"
        required
        value={password}
        onChange={({ currentTarget }) => setPassword(currentTarget.value)}
      />
      <Failure error={login.error} />
      <Button type="submit" loading={login.isPending} disabled={locked > 0}>
        {locked > 0 ? `Try again in ${duration(locked * 1000)}` : "Log in"}
      </Button>
    </Stack>
  );
}

const REFUSALS: Record<string, string> = {
  disabled: "Your account is disabled. Ask an admin to enable it.",
  name_in_use: "Another user of Penstock already has your name. Ask an admin.",
  no_role: "Your account has no role in Penstock. Ask an admin for one.",
  oidc_denied: "The provider refused the log-in.",
  oidc_failed: "The provider can't be reached, or its answer is not valid. The log of the server says more.",
  oidc_state: "The log-in took too long, or was begun in another browser. Try again.",
};

/** Why the login at another server came to nothing, by the code in the address. */
function Refused({ code }: { code: string | null }) {
  if (code === null) return null;
  return (
    <Alert color="red" variant="light" icon={<IconAlertTriangle />} role="alert">
      {REFUSALS[code] ?? `The log-in failed (${code}). Try again, or ask an admin.`}
    </Alert>
  );
}
