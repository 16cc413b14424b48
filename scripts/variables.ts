/**
 * Hands the shell's model settings to the Worker. They stand in a file that only its owner can read and that is gone
 * when the server is; a command line would show them to everybody.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseEnv } from "node:util";
import { Failure } from "./failure.ts";

const PASSED = /^(?:(?:OPENAI|ANTHROPIC|GEMINI)_[A-Z0-9_]+|DRAMATIS_MODEL)$/;

export interface PassedVariables {
  /** What wrangler has to be told. */
  arguments: string[];
  /** Removes the file. */
  remove(): void;
}

/**
 * The settings of `environment`, and with them those of `.dev.vars` in `root`, because wrangler reads that by itself only
 * when it is given no other file. The shell's come first.
 */
export function passVariables(root: string, environment: NodeJS.ProcessEnv): PassedVariables {
  const shell = Object.entries(environment).filter(([name]) => PASSED.test(name));
  if (shell.length === 0) return { arguments: [], remove: () => {} };
  const folder = mkdtempSync(join(tmpdir(), "dramatis-"));
  const file = join(folder, "variables.env");
  const variables = { ...readVariables(root), ...Object.fromEntries(shell) };
  writeFileSync(file, formatVariables(variables), { mode: 0o600 });
  return {
    arguments: ["--env-file", file],
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
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
