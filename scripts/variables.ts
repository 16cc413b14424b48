/**
 * Hands the shell's model settings to the Worker. They stand in a file that only its owner can read and that is gone
 * when the server is; a command line would show them to everybody.
 */
import { existsSync, mkdtempSync, readFileSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { parseEnv } from "node:util";
import { Failure } from "./failure.ts";

const PASSED = /^(?:(?:OPENAI|ANTHROPIC|GEMINI)_[A-Z0-9_]+|DRAMATIS_MODEL)$/;

/** The environment variable that tells the keeper of the file. */
export const PASSED_FILE = "DRAMATIS_PASSED_FILE";

/**
 * Writes the file, alone in a folder of its own, and returns its path; nothing if the shell sets nothing. It has the
 * settings of `environment` and, where those are silent, of `.dev.vars` in `root`: wrangler reads that by itself only
 * when it is given no other file.
 */
export function passVariables(root: string, environment: NodeJS.ProcessEnv): string | undefined {
  const shell = Object.entries(environment).filter(([name]) => PASSED.test(name));
  if (shell.length === 0) return undefined;
  const file = join(mkdtempSync(join(tmpdir(), "dramatis-")), "variables.env");
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
