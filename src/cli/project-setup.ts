/** Checks the setup of a project beside its configuration: the variables, the packages, and the files that git ignores. */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseEnv } from "node:util";
import { missingKey } from "../adapters/default-profile.ts";
import { DramatisError } from "../shared/errors.ts";
import { hostProblem, listedIn } from "../shared/host-rules.ts";
import { similarId } from "../shared/known-ids.ts";
import { redactSecrets } from "../shared/redact.ts";
import { isOlder, nodeProblem, type Version } from "./node-version.ts";

/** A problem of a project. The Worker does not start, or is not safe, with a `failed` one. */
export interface ProjectProblem {
  status: "failed" | "warning";
  message: string;
}

/** Reads a file of the project; `null` if it is absent. */
export type Read = (path: string) => string | null;

export const failed = (message: string): ProjectProblem => ({ status: "failed", message });
export const warning = (message: string): ProjectProblem => ({ status: "warning", message });

const MIN_SECRET_BYTES = 32;
/** The variables of this project whose names a person may misspell. */
const VARIABLES = [
  ...["DRAMATIS_LOCAL", "DRAMATIS_MODEL", "DRAMATIS_MODEL_HOSTS", "DRAMATIS_MODEL_SECRETS", "DRAMATIS_URL"],
  ...["DRAMATIS_HTTP_HOSTS", "DRAMATIS_WEBHOOK_HOSTS", "DRAMATIS_LOG", "DRAMATIS_TOKEN", "SECRETS_KEY"],
  ...["AUTH_SECRET", "AUTH_SECRET_PREVIOUS", "AUTH_JWKS_URL", "AUTH_ISSUER", "AUTH_AUDIENCE"],
];
const SECRET_NAME = /(?:^|_)(?:API_KEY|SECRET|TOKEN|PASSWORD)(?:_PREVIOUS)?$/;
/** The oldest versions of packages that work. */
const OLDEST_PACKAGES: Record<string, Version> = { wrangler: [4, 155], zod: [4, 0] };

/** Reports whether a variable has the name of a secret, or a value that looks like a key. */
export function isSecret(name: string, value: unknown): boolean {
  return SECRET_NAME.test(name) || (typeof value === "string" && redactSecrets(value) !== value);
}

/** Variables by their names, each with its file. */
export type Variables = ReadonlyMap<string, { value: string; file: string }>;

/** Returns the variables of `.dev.vars`; without this file, of `.env` and `.env.local`, as wrangler does. */
export function localVariables(read: Read): Variables {
  const files = read(".dev.vars") === null ? [".env", ".env.local"] : [".dev.vars"];
  return new Map(
    files.flatMap((file) =>
      Object.entries(parseEnv(read(file) ?? "")).map(
        ([name, value = ""]) => [name, { value, file }] as const,
      ),
    ),
  );
}

export function valuesOf(variables: Variables): Record<string, string> {
  return Object.fromEntries([...variables].map(([name, { value }]) => [name, value]));
}

/** Returns the problems of the variables for this machine. */
export function variableProblems(folder: string, read: Read, variables: Variables): ProjectProblem[] {
  return [
    ...[".dev.vars", ".env", ".env.local"]
      .filter((path) => isExposed(folder, path, read))
      .map((path) =>
        failed(
          `${path} contains secrets, and git does not ignore it. Add the line ${path}* to .gitignore. If it was committed, run git rm --cached ${path}, and replace the secrets.`,
        ),
      ),
    ...Array.from(filesWithNull(variables), (file) =>
      failed(`${file} has null bytes. Save this file as UTF-8.`),
    ),
    ...[...variables].flatMap(([name, { value, file }]) =>
      valueProblems(name, value).map((problem) => ({ ...problem, message: `${file}: ${problem.message}` })),
    ),
  ];
}

function filesWithNull(variables: Variables): Set<string> {
  const found = [...variables].filter(([name, { value }]) => `${name}${value}`.includes("\0"));
  return new Set(found.map(([, { file }]) => file));
}

function valueProblems(name: string, value: string): ProjectProblem[] {
  switch (name) {
    case "AUTH_SECRET":
    case "SECRETS_KEY": {
      const length = Buffer.byteLength(value);
      if (length >= MIN_SECRET_BYTES) return [];
      return [
        failed(
          `${name} has ${length} bytes. It needs at least ${MIN_SECRET_BYTES}. Make one: openssl rand -base64 48`,
        ),
      ];
    }
    case "DRAMATIS_HTTP_HOSTS":
    case "DRAMATIS_WEBHOOK_HOSTS":
      return listedIn(value).flatMap((host) => {
        const problem = host === "*" ? null : hostProblem(host);
        return problem === null ? [] : failed(`${name}: ${problem}`);
      });
    default: {
      const meant = VARIABLES.includes(name) ? undefined : similarId(name, VARIABLES, 0.85);
      return meant === undefined ? [] : [warning(`Nothing reads ${name}. Did you mean ${meant}?`)];
    }
  }
}

/** Returns the problem of the model that all variables of the Worker choose. `deployed` is the file with the variables of deployments, which may have the key as a secret. */
export function modelProblems(variables: Variables, deployed: string): ProjectProblem[] {
  const { file } = variables.get("DRAMATIS_MODEL") ?? {};
  if (file === undefined) return [];
  try {
    const missing = missingKey(valuesOf(variables), false);
    if (missing === undefined) return [];
    const { keyName, baseUrlName } = missing;
    const problem = file === deployed ? warning : failed;
    return [
      problem(
        `${file}: The model of DRAMATIS_MODEL has no key. Set ${keyName}. For a server without keys, set ${baseUrlName} instead.`,
      ),
    ];
  } catch (error) {
    if (!(error instanceof DramatisError)) throw error;
    return [failed(`${file}: ${error.message}`)];
  }
}

function isExposed(folder: string, path: string, read: Read): boolean {
  const hasSecret = Object.entries(parseEnv(read(path) ?? "")).some(([name, value]) => isSecret(name, value));
  // Git ends with 1 for a file that it does not ignore, and with 128 outside of a repository.
  return hasSecret && spawnSync("git", ["check-ignore", "-q", path], { cwd: folder }).status === 1;
}

export function versionProblems(folder: string, node: string): ProjectProblem[] {
  const packages = Object.entries(OLDEST_PACKAGES).flatMap(([name, oldest]) => {
    const version = manifestOf(folder, name)?.version;
    if (version === undefined)
      return [failed(`The package ${name} is not installed. Run: npm install ${name}@^${oldest.join(".")}`)];
    if (!isOlder(version, oldest)) return [];
    return [failed(`${name} ${version} is too old. Run: npm install ${name}@^${oldest.join(".")}`)];
  });
  const needed = manifestOf(folder, "dramatis")?.dependencies?.agents;
  const agents = manifestOf(folder, "agents")?.version;
  const copies =
    needed === undefined || agents === undefined || needed === agents
      ? []
      : [
          warning(
            `agents ${agents} is installed, but dramatis uses a second copy, agents ${needed}. Run: npm install agents@${needed}`,
          ),
        ];
  const problem = nodeProblem(node);
  return [...(problem === undefined ? [] : [failed(problem)]), ...packages, ...copies];
}

interface Manifest {
  version: string;
  dependencies?: Record<string, string>;
}

function manifestOf(folder: string, name: string): Manifest | undefined {
  const path = join(folder, "node_modules", name, "package.json");
  // SAFETY: npm maintains these members of the manifests of packages.
  return existsSync(path) ? (JSON.parse(readFileSync(path, "utf8")) as Manifest) : undefined;
}
