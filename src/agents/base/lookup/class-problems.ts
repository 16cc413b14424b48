/** Explanations for classes of actors that cannot be reached: the fault, and the line to change. */

/** The actor classes of a Worker. */
export interface WorkerClasses {
  /** Reports whether the Worker binds or exports a class of this name. */
  has(name: string): boolean;
  /** Reports whether the Worker exports a Durable Object class of this name without storage. */
  lacksStorage(name: string): boolean;
  /** Returns the names of all such classes, in order. Reads every export, and each read makes a binding. */
  withoutStorage(): string[];
}

export function notExported(name: string): string {
  const migration =
    name === "Executor" ? "" : " Name it in `new_sqlite_classes` of a migration with a new tag.";
  return `The Worker does not export a class named "${name}": export it under this name from the main module, as in \`export const { ${name} } = app;\`.${migration}`;
}

/** Explains an exported class that the configuration does not declare. */
export function withoutStorage(name: string): string {
  return `"${name}" is exported, but it is not a Durable Object class with storage. Add it to \`new_sqlite_classes\` in the \`migrations\` of the Worker's configuration. After the first deploy, use a migration with a new tag.`;
}

/**
 * Explains the error that `getAgentByName` and the platform throw for a class that cannot be reached; `undefined` for any
 * other error. The error does not name the class.
 */
export function unreachableClass(error: Error): string | undefined {
  if (!(error instanceof TypeError)) return undefined;
  if (/\b(?:idFromName|getByName) is not a function$/.test(error.message))
    return "The class of the called actor is not a Durable Object class with storage. Add it to `new_sqlite_classes` in the `migrations` of the Worker's configuration. `GET /health` lists such classes.";
  if (/^Cannot read properties of undefined \(reading '(?:idFromName|getByName)'\)$/.test(error.message))
    return "The Worker does not export the class of the called actor. Export the class under its name from the main module.";
  return undefined;
}
