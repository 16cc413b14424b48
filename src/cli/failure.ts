/**
 * The end of a command that failed: an exit code, and a line for standard error.
 *
 * CLIEXIT-1  The exit code is 0 for success, 1 if the operation failed, 2 for wrong usage, and 130 after Ctrl-C. A reader of the output that
 *            ends first, such as `head`, is a success.
 */
import type { DramatisClientError } from "../client/errors.ts";

export const FAILED = 1;
export const WRONG_USAGE = 2;
export const INTERRUPTED = 130;

/** A command that failed. `message` states the problem and the fix. */
export class CommandFailure extends Error {
  readonly exitCode: number;

  constructor(message: string, exitCode: number = FAILED) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** Returns a failure for a command that was written wrongly. */
export function wrongUsage(message: string): CommandFailure {
  return new CommandFailure(message, WRONG_USAGE);
}

/** Returns the line for the answer of another server. */
export function notDramatis(url: string, detail: string): string {
  return `${url} answers, but not as a Dramatis server (${detail}). Correct --url or DRAMATIS_URL.`;
}

export function requestFailure({ code, status, detail }: DramatisClientError, url: string): string {
  switch (code) {
    case "NETWORK":
      return `No server answers at ${url}. Start it with npm run dev or npm start, or set --url or DRAMATIS_URL.`;
    case "HTTP":
      return notDramatis(url, detail);
    case "UNAUTHENTICATED":
      return `${code}: ${detail} Set DRAMATIS_TOKEN to a valid token, and check it with: dramatis doctor`;
    case "FORBIDDEN":
      // No role lets a person replace the turn of another person.
      if (detail.startsWith("Only the author of a message")) return `${code}: ${detail}`;
      return `${code}: ${detail} See your roles with: dramatis doctor`;
    case "PERMISSION_DENIED":
      return `${code}: ${detail} See your roles with: dramatis doctor`;
    case "NOT_FOUND":
      // Another server of this machine may have the agent.
      return `${code}: ${detail.replace(/^There is no agent "[^"]*"(?=\.)/, (found) => `${found} at ${url}`)}`;
    default:
      return status === 0 ? detail : `${code}: ${detail}`;
  }
}
