/** The end of an actor that removes its own storage, as its callers see it. */

/** Reports whether an RPC failed because the actor has removed its storage and was ended. */
export function isDestroyed(error: unknown): boolean {
  return error instanceof Error && error.message === "destroyed";
}
