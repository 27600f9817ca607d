import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, body, type Schemas } from "#/api/client";

/** Where a value comes from: one of these. */
export interface SecretSpec {
  value?: string;
  sealed?: string;
  environment?: string;
  file?: string;
  vault?: { mount?: string; path: string; field?: string };
}

export type Secret = Omit<Schemas["DocumentInfo"], "spec"> & { spec: SecretSpec };

export interface NewSecret {
  metadata: { name: string; description?: string; labels?: Record<string, string> };
  spec: SecretSpec;
}

const SECRETS = ["secrets"] as const;
const MOST = 1000;

/** All secrets, without their values, which no answer has. */
export function useSecrets() {
  return useQuery({
    queryKey: SECRETS,
    queryFn: async () => {
      const found = await body(api.GET("/secrets", { params: { query: { limit: MOST } } }));
      return Promise.all(found.items.map(({ id }) => one(id)));
    },
  });
}

// Only a document by itself tells what refers to it.
const one = async (id: string) =>
  (await body(api.GET("/secrets/{name}", { params: { path: { name: id } } }))) as Secret;

/** Creates, changes and deletes secrets; the list is up to date afterwards. */
export function useSecretActions() {
  const queries = useQueryClient();
  const onSuccess = () => queries.invalidateQueries({ queryKey: SECRETS });
  const create = useMutation({
    mutationFn: (secret: NewSecret) => body(api.POST("/secrets", { body: secret as never })),
    onSuccess,
  });
  const replace = useMutation({
    mutationFn: ({ id, secret }: { id: string; secret: NewSecret }) =>
      body(api.PUT("/secrets/{name}", { params: { path: { name: id } }, body: secret as never })),
    onSuccess,
  });
  const remove = useMutation({
    mutationFn: (id: string) => body(api.DELETE("/secrets/{name}", { params: { path: { name: id } } })),
    onSuccess,
  });
  return { create, replace, remove };
}
