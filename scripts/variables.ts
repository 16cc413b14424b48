/**
 * Passes the shell's settings for models and authentication to the Worker, in a file that only its owner can read. The file is
 * removed with the server. A command line would be visible to every user of the machine.
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
import { HTTP_PROVIDER_IDS, httpProvider } from "../src/adapters/gateway/http-providers.ts";
import { Failure } from "./failure.ts";
import { processInfo } from "./process-info.ts";

/** Beginnings of the variables of model providers, such as `OPENAI_`. */
const PROVIDERS = HTTP_PROVIDER_IDS.map((id) => httpProvider(id)?.keyName.replace("API_KEY", ""));

const PASSED = new RegExp(
  `^(?:(?:${PROVIDERS.join("|")})[A-Z0-9_]+|AUTH_(?:SECRET(?:_PREVIOUS)?|JWKS_URL|ISSUER|AUDIENCE)|DRAMATIS_(?:URL|LOG|HTTP_HOSTS|MODEL(?:_HOSTS)?))$`,
);

const FILE_NAME = "variables.env";

/** Name of the environment variable with the path of the file, for the keeper. */
export const PASSED_FILE = "DRAMATIS_PASSED_FILE";

/**
 * Writes the file into a new folder and returns its path, or `undefined` if the shell has no settings. Settings of
 * `.dev.vars` in `root` are added, because wrangler ignores that file when it gets another.
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

/** Removes the file and its folder, if they exist. */
export function removePassed(file: string | undefined): void {
  if (file === undefined) return;
  rmSync(file, { force: true });
  if (existsSync(dirname(file))) rmdirSync(dirname(file));
}

/** Removes files of servers that were killed together with their keeper. The folder's name contains the process id. */
function sweep(): void {
  for (const name of readdirSync(tmpdir())) {
    const [, owner] = /^dramatis-(\d+)-\w{6}$/.exec(name) ?? [];
    if (owner === undefined || processInfo(Number(owner)) !== undefined) continue;
    try {
      removePassed(join(tmpdir(), name, FILE_NAME));
    } catch {
      // The folder belongs to another user, or another start removes it now.
    }
  }
}

/** Formats variables so that wrangler reads them unchanged. wrangler expands an unescaped `$` and accepts three quotes. */
export function formatVariables(variables: NodeJS.Dict<string>): string {
  return Object.entries(variables)
    .map(([name, value = ""]) => {
      const quote = ["'", "`", '"'].find((candidate) => !value.includes(candidate));
      if (quote === undefined || (quote === '"' && /\\[nr]/.test(value))) {
        throw new Failure(
          `The value of ${name} cannot be passed to the Worker because it contains all kinds of quotes. Remove one kind.`,
        );
      }
      return `${name}=${quote}${value.replaceAll("$", "\\$")}${quote}\n`;
    })
    .join("");
}

/** Returns the variables of a folder's `.dev.vars`, or of its `.env`. */
export function readVariables(root: string): NodeJS.Dict<string> {
  const file = [".dev.vars", ".env"].map((name) => join(root, name)).find((path) => existsSync(path));
  return file === undefined ? {} : parseEnv(readFileSync(file, "utf8"));
}
