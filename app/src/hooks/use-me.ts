/** Loads the roles of the reader. */
import { hasRole } from "../../../src/shared/roles.ts";
import { client } from "../client.ts";
import { useResource } from "./use-resource.ts";

const load = (signal: AbortSignal) => client.me({ signal });

/** Reports whether the reader is an operator or an administrator; `undefined` until it is known. */
export function useIsOperator(): boolean | undefined {
  const { value, error } = useResource(load);
  if (error !== undefined) return false;
  return value === undefined ? undefined : hasRole(value, "operator");
}
