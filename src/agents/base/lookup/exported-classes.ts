/**
 * The classes of a Worker, as its other classes reach them: through the automatic bindings of its own exports.
 *
 * EXPORT-1  A class is found by its name: a binding of that name in `env`, otherwise the export of that name.
 * EXPORT-2  A class that cannot be reached is an error that names the class and the line to change.
 * EXPORT-3  `/health` lists exported Durable Object classes without storage, and a tool that calls one fails with the line to
 *           change.
 */
import { exports } from "cloudflare:workers";
import { DramatisError, type ErrorCode, unavailable } from "../../../shared/errors.ts";
import { notExported, type WorkerClasses, withoutStorage } from "./class-problems.ts";

/** The actors of `dramatis()`, which every application exports. */
const ACTORS = ["Conversation", "Agent"];

/**
 * Throws `UNAVAILABLE`, with the line to change, unless the actors and the `Executor` of `dramatis()` can be reached.
 *
 * @param env The bindings and variables of the Worker.
 */
export function checkExports(env: object): void {
  for (const name of ACTORS) namespaceOf(env, name, "UNAVAILABLE");
  entrypointOf(env, "Executor");
}

/** The namespaces of exported classes. Each read of an export makes a new one. */
const exportedNamespaces = new Map<string, unknown>();

/** Returns the namespace of a Durable Object class. Throws an error of `code` unless the class can be reached. */
export function namespaceOf(env: object, name: string, code: ErrorCode): unknown {
  const bound = ownMember(env, name);
  if (isNamespace(bound)) return bound;
  const known = exportedNamespaces.get(name);
  if (known !== undefined) return known;
  const exported = ownMember(exports, name);
  if (isNamespace(exported)) {
    exportedNamespaces.set(name, exported);
    return exported;
  }
  throw new DramatisError(code, exported === undefined ? notExported(name) : withoutStorage(name));
}

export function workerClasses(env: object): WorkerClasses {
  return {
    has: (name) => ownMember(env, name) !== undefined || ownMember(exports, name) !== undefined,
    lacksStorage,
    withoutStorage: () => Object.keys(exports).filter(lacksStorage).sort(),
  };
}

function lacksStorage(name: string): boolean {
  return tagOf(ownMember(exports, name)).endsWith("DurableObjectClass]");
}

/** Returns a stub of a `WorkerEntrypoint` class. Throws `UNAVAILABLE` unless the class can be reached. */
export function entrypointOf(env: object, name: string): unknown {
  const found = ownMember(env, name) ?? ownMember(exports, name);
  if (found === undefined) throw unavailable(notExported(name));
  return found;
}

/** Returns an own member; `undefined` for inherited members. */
function ownMember(owner: object, name: string): unknown {
  return Object.hasOwn(owner, name) ? Reflect.get(owner, name) : undefined;
}

/** Checks the class tag. A stub of an entrypoint has every member, so members do not tell the two apart. */
function isNamespace(value: unknown): boolean {
  return tagOf(value).endsWith("DurableObjectNamespace]");
}

function tagOf(value: unknown): string {
  return Object.prototype.toString.call(value);
}
