/** The form of a command, and the services that it uses. */
import type { DramatisClient } from "../client/api.ts";

export interface Cli {
  client: DramatisClient;
  url: string;
  /** The token is set. Commands do not see the token itself. */
  hasToken: boolean;
  /** When the token expires, in milliseconds since the epoch, if the token says so. */
  tokenExpires: number | undefined;
  json: boolean;
  /** Columns of the terminal; `Infinity` without a terminal, so no line is cut. */
  width: number;
  /** Aborts on Ctrl-C. */
  signal: AbortSignal;
  /** Sends a request that has no function in the client. `path` begins with `/`. Throws `DramatisClientError`. */
  request(method: string, path: string, options?: { accept?: string; body?: string }): Promise<Response>;
  /** Writes to standard output. Resolves when more output may follow. */
  write(output: string | Uint8Array): Promise<void>;
  /** Writes a line for people to standard error. */
  note(line: string): void;
}

export type Options = Partial<Record<string, string>>;

/** The result of a command: a document for programs, and text for people. */
export interface Answer {
  value: unknown;
  text: string;
  /** The command failed, and its text says why. */
  failed?: boolean;
}

/** A command. Its result is printed. A command that streams prints by itself and returns nothing. */
export interface Command {
  /** The words of the command, such as `list runs`. */
  name: string;
  about: string;
  /** Arguments as commander writes them, `<id>` or `[turn]`, with their descriptions. */
  args?: Record<string, string>;
  /** Options as commander writes them, with their descriptions. */
  options?: Record<string, string>;
  run(cli: Cli, args: (string | undefined)[], options: Options): Promise<Answer | undefined>;
}
