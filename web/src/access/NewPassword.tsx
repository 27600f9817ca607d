import { PasswordInput } from "@mantine/core";
import { useState } from "react";

/** A password that is typed twice. */
export function useNewPassword() {
  const [value, setValue] = useState("");
  const [again, setAgain] = useState("");
  const [wasTried, setTried] = useState(false);
  // Somebody who is still typing has made no mistake yet.
  const differs = wasTried ? again !== value : !value.startsWith(again);
  /** Whether it can be sent; if not, the fields say why. */
  const check = () => {
    setTried(true);
    return value !== "" && value === again;
  };
  return { value, setValue, again, setAgain, differs, check };
}

interface Props {
  label: string;
  password: ReturnType<typeof useNewPassword>;
}

/** Two fields for a new password. The server says what a good one is. */
export function NewPassword({ label, password }: Props) {
  const { value, setValue, again, setAgain, differs } = password;
  return (
    <>
      <PasswordInput
        label={label}
        name="new-password"
        autoComplete="new-password"
        required
        value={value}
        onChange={({ currentTarget }) => setValue(currentTarget.value)}
      />
      <PasswordInput
        label={`${label}, again`}
        name="new-password-again"
        autoComplete="new-password"
        required
        value={again}
        onChange={({ currentTarget }) => setAgain(currentTarget.value)}
        error={differs && "The two passwords differ"}
      />
    </>
  );
}
