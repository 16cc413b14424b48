/**
 * Hands the shell's settings of models and authentication to the Worker. They stand in a file that only its owner can
 * read and that is gone when the server is; a command line would show them to everybody.
 */
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { parseEnv } from "node:util";
import { Failure } from "./failure.ts";
import { processInfo } from "./process-info.ts";

const PASSED =
  /^(?:(?:OPENAI|ANTHROPIC|GEMINI)_[A-Z0-9_]+|AUTH_(?:SECRET(?:_PREVIOUS)?|JWKS_URL|ISSUER|AUDIENCE)|DRAMATIS_MODEL(?:_HOSTS)?)$/;

const FILE_NAME = "variables.env";

/** The environment variable that tells the keeper of the file. */
export const PASSED_FILE = "DRAMATIS_PASSED_FILE";

/**
 * Writes the file, alone in a folder of its own, and returns its path; nothing if the shell sets nothing. It has the
 * settings of `environment` and, where those are silent, of `.dev.vars` in `root`: wrangler reads that by itself only
 * when it is given no other file.
 */
export function passVariables(root: string, environment: NodeJS.ProcessEnv): string | undefined {
  sweep();
  const shell = Object.entries(environment).filter(([name]) => PASSED.test(name));
  if (shell.length === 0) return undefined;
  const file = join(mkdtempSync(join(tmpdir(), `dramatis-${process.pid}-`)), FILE_NAME);
  const variables = { ...readVariables(root), ...Object.fromEntries(shell) };
  writeFileSync(file, formatVariables(variables), { mode: 0o600 });
  return file;
}

/** Removes what `passVariables` wrote; twice is once. */
export function removePassed(file: string | undefined): void {
  if (file === undefined) return;
  rmSync(file, { force: true });
  if (existsSync(dirname(file))) rmdirSync(dirname(file));
}

/** Removes what was left where a server and its keeper were killed at once: the folder's name says whose it was. */
function sweep(): void {
  for (const name of readdirSync(tmpdir())) {
    const [, owner] = /^dramatis-(\d+)-\w{6}$/.exec(name) ?? [];
    if (owner === undefined || processInfo(Number(owner)) !== undefined) continue;
    try {
      removePassed(join(tmpdir(), name, FILE_NAME));
    } catch {
      // Another user's, or swept by another start at this moment.
    }
  }
}

/** Variables as text that wrangler reads back unchanged: it expands `$` unless escaped, and knows three quotes. */
export function formatVariables(variables: NodeJS.Dict<string>): string {
  return Object.entries(variables)
    .map(([name, value = ""]) => {
      const quote = ["'", "`", '"'].find((candidate) => !value.includes(candidate));
      if (quote === undefined || (quote === '"' && /\\[nr]/.test(value))) {
        throw new Failure(`The value of ${name} cannot be passed on: it has every kind of quote.`);
      }
      return `${name}=${quote}${value.replaceAll("$", "\\$")}${quote}\n`;
    })
    .join("");
}

function readVariables(root: string): NodeJS.Dict<string> {
  const file = [".dev.vars", ".env"].map((name) => join(root, name)).find((path) => existsSync(path));
  return file === undefined ? {} : parseEnv(readFileSync(file, "utf8"));
}
