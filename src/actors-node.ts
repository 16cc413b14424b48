/** Entry `dramatis/actors` in Node, where tests load the code of an application. Its actors run only on Workers. */
import { onlyOnWorkers } from "./only-on-workers.ts";

export * from "./actors-portable.ts";

/** Throws `UNSUPPORTED`: Node has no actors. */
export function completeOperation(): never {
  throw onlyOnWorkers("`completeOperation()`");
}

/** Throws `UNSUPPORTED` when it is constructed. */
export class SessionAgent {
  constructor() {
    throw onlyOnWorkers("`SessionAgent`");
  }
}
