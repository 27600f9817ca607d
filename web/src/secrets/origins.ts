import type { SecretSpec } from "./api";

/** Where the value of a secret comes from. */
export type Origin = "value" | "environment" | "file" | "vault";

export const ORIGINS: { value: Origin; label: string }[] = [
  { value: "value", label: "Entered here, stored encrypted" },
  { value: "environment", label: "Environment variable of the worker" },
  { value: "file", label: "File on the worker" },
  { value: "vault", label: "Vault" },
];

/** Where a stored secret has its value, in a few words. */
export function originOf(spec: SecretSpec): string {
  if (spec.environment) return `variable ${spec.environment}`;
  if (spec.file) return `file ${spec.file}`;
  if (spec.vault) return `Vault ${spec.vault.mount ?? "secret"}/${spec.vault.path}`;
  return "stored encrypted";
}

/** The spec of a secret from what was entered; a path in Vault may end with `#field`. */
export function specOf(origin: Origin, text: string): SecretSpec {
  if (origin !== "vault") return { [origin]: origin === "value" ? text : text.trim() };
  const [path, field] = text.trim().split("#");
  return { vault: { path: path!, ...(field ? { field } : {}) } };
}
