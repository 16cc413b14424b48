/** The package `dramatis` in Node, where tests load the agents of an application. */
import { onlyOnWorkers } from "./only-on-workers.ts";
import { type DramatisOptions, definitionsOf } from "./options.ts";

export * from "./portable.ts";

/** Checks the definitions as on Workers, and throws `INVALID_INPUT`. Otherwise throws `UNSUPPORTED`: a Worker has no place in Node. */
export function dramatis(options: DramatisOptions): never {
  definitionsOf(options);
  throw onlyOnWorkers("`dramatis()`");
}
