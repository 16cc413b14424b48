/** The package `dramatis` in Node, where tests load the libraries of an application. Its actors run only on Workers. */
import { DramatisError } from "./shared/errors.ts";

export * from "./portable.ts";

/** Throws `UNSUPPORTED`: a Worker has no place in Node. */
export function dramatis(): never {
  throw onlyOnWorkers("`dramatis()`");
}

/** Throws `UNSUPPORTED`, as `dramatis` does. */
export function completeOperation(): never {
  throw onlyOnWorkers("`completeOperation()`");
}

/** Throws `UNSUPPORTED` when it is constructed. */
export class SessionAgent {
  constructor() {
    throw onlyOnWorkers("`SessionAgent`");
  }
}

function onlyOnWorkers(what: string): DramatisError {
  const message = `${what} runs only on Workers. To test an application in Node, import its library, and use \`createTestApp\` of dramatis/testing.`;
  return new DramatisError("UNSUPPORTED", message);
}
