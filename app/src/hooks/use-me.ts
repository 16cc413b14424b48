/** The roles of the reader. */
import { hasRole, type Role } from "../../../src/shared/roles.ts";
import { useSession } from "../session.ts";

/** Reports whether the reader has a role. An administrator has each role. */
export function useHasRole(role: Role): boolean {
  const { reader } = useSession();
  return reader !== undefined && hasRole(reader, role);
}
