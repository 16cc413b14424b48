/** The package `dramatis` in Node, where tests load the agents of an application. */
import { onlyOnWorkers } from "./only-on-workers.ts";

export * from "./portable.ts";

/** Throws `UNSUPPORTED`: a Worker has no place in Node. */
export function dramatis(): never {
  throw onlyOnWorkers("`dramatis()`");
}
