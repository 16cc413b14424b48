/** The error of exports that need the platform of Workers. */
import { DramatisError } from "./shared/errors.ts";

export function onlyOnWorkers(what: string): DramatisError {
  const message = `${what} runs only on Workers. To test an application in Node, import its agents, and use \`createTestApp\` of dramatis/testing.`;
  return new DramatisError("UNSUPPORTED", message);
}
