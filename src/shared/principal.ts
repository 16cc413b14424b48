/**
 * Principals: the authenticated callers. Every resource belongs to a tenant; roles grant access beyond a caller's own.
 *
 * PRINCIPAL-1  No two tenants share an actor name, a row or a storage key, and no tenant has a name that means "no tenant".
 *              Tenant names do not begin with a colon, are well-formed, and are short enough to be part of each of these.
 * ACCESS-1  An RPC call without a valid principal throws `INVALID_INPUT`.
 */
import { forbidden, invalid, unavailable } from "./errors.ts";
import { isPlainObject } from "./json.ts";
import { hasRole, type Roles } from "./roles.ts";

export interface Principal {
  subject: string;
  tenant: string;
  /** Unknown roles grant no rights. */
  roles: Roles;
  /** The end of its access, in milliseconds since the epoch; absent = no end. */
  expiresAt?: number;
}

/** An escaped tenant name of this many characters fits a storage key of 1 024 bytes with room for the rest. */
const MAX_TENANT_LENGTH = 100;
const MAX_SUBJECT_LENGTH = 200;

/** Returns the principal. Throws `UNAVAILABLE` if the application's `authorize` returned an unusable one. */
export function usablePrincipal(principal: Principal): Principal {
  if (isUsable(principal)) return principal;
  throw unavailable(
    `\`authorize\` returned an unusable principal: a tenant needs 1 to ${MAX_TENANT_LENGTH} well-formed characters without a leading colon, a subject 1 to ${MAX_SUBJECT_LENGTH}.`,
  );
}

export function isUsable({ tenant, subject }: Principal): boolean {
  return isTenant(tenant) && isName(subject, MAX_SUBJECT_LENGTH);
}

/** Throws `INVALID_INPUT` for an invalid principal, because RPC input has no static types (ACCESS-1). */
export function checkPrincipal(value: unknown): void {
  const { subject, tenant, roles } = isPlainObject(value) ? value : {};
  const isNamed = typeof subject === "string" && subject !== "" && typeof tenant === "string";
  if (isNamed && Array.isArray(roles) && roles.every((role) => typeof role === "string")) return;
  throw invalid("The principal needs a `subject`, a `tenant` and a list of `roles`.");
}

/** Reports whether a text can be the name of a tenant (PRINCIPAL-1). */
export function isTenant(name: string): boolean {
  return isName(name, MAX_TENANT_LENGTH) && !name.startsWith(":");
}

function isName(name: string, max: number): boolean {
  return name !== "" && name.length <= max && name.isWellFormed();
}

export function mayReadAll(principal: Pick<Principal, "roles">): boolean {
  return hasRole(principal, "operator");
}

/** Reports whether a principal may create and change agents and libraries of its tenant. */
export function mayAuthor(principal: Pick<Principal, "roles">): boolean {
  return hasRole(principal, "author");
}

/** Throws `FORBIDDEN` unless a principal may import conversations: their files bring versions of personas and tools. */
export function checkMayImport({ roles }: Pick<Principal, "roles">): void {
  if (roles.includes("admin")) return;
  throw forbidden("Only administrators may import conversations.");
}

export function hasExpired({ expiresAt }: Pick<Principal, "expiresAt">, now: number): boolean {
  return expiresAt !== undefined && expiresAt <= now;
}
