/**
 * `dramatis doctor`: checks the project in the folder, and the address, the token, the version and the health of a server. It says what to change.
 */
import { resolve } from "node:path";
import { DramatisClientError, notJson } from "../client/errors.ts";
import { VERSION } from "../shared/version.ts";
import type { Answer, Cli, Command, Options } from "./command.ts";
import { checkDefinitions } from "./definition-check.ts";
import { CommandFailure, requestFailure } from "./failure.ts";
import { checkProject, type WorkerModule } from "./project-checks.ts";
import { failed, type ProjectProblem, warning } from "./project-setup.ts";
import { clean, time, wrap } from "./text.ts";

interface Health {
  version: string;
  /** Optional parts that are absent or do not work, each with the fix. */
  missing: { name: string; message: string }[];
}

interface Check {
  name: string;
  status: "ok" | "warning" | "failed";
  message: string;
}

const LOCAL = /^(?:127(?:\.\d{1,3}){3}|localhost|\[::1\])$/;

/** Runs a check. Returns the error of a failed request as a failed check. */
async function check(
  cli: Cli,
  name: string,
  body: () => Promise<Check[]>,
  mayBeStopped = false,
): Promise<Check[]> {
  try {
    return await body();
  } catch (error) {
    if (!(error instanceof DramatisClientError)) throw error;
    const status = mayBeStopped && error.code === "NETWORK" ? "warning" : "failed";
    return [{ name, status, message: requestFailure(error, cli.url) }];
  }
}

function tokenChecks({ url, hasToken, tokenExpires }: Cli, now: number): Check[] {
  const name = "token";
  if (!hasToken)
    return [{ name, status: "ok", message: "DRAMATIS_TOKEN is not set. A local server needs no token." }];
  const { protocol, hostname } = new URL(url);
  if (tokenExpires !== undefined && tokenExpires < now) {
    const since = time(new Date(tokenExpires).toISOString());
    return [{ name, status: "failed", message: `The token expired at ${since}. Set a new DRAMATIS_TOKEN.` }];
  }
  if (LOCAL.test(hostname))
    return [{ name, status: "ok", message: "DRAMATIS_TOKEN is set. A local server may not check it." }];
  if (protocol === "http:")
    return [{ name, status: "warning", message: "The token crosses the network unencrypted. Use https://." }];
  return [{ name, status: "ok", message: "DRAMATIS_TOKEN is set." }];
}

async function serverChecks(cli: Cli, mayBeStopped: boolean): Promise<Check[]> {
  const body = async (): Promise<Check[]> => {
    const response = await cli.request("GET", "/health");
    // SAFETY: the values are checked before their use.
    const { version, missing = [] } = ((await response.json().catch(() => null)) ?? {}) as Partial<Health>;
    if (typeof version !== "string") throw notJson(response, undefined);
    const sameVersion = version === VERSION;
    return [
      { name: "server", status: "ok", message: `${cli.url} is ready.` },
      {
        name: "version",
        status: sameVersion ? "ok" : "warning",
        message: sameVersion
          ? version
          : `The server has ${version}, this command ${VERSION}. Run: npx dramatis@${clean(version)}`,
      },
      ...missing.map(
        ({ name, message }): Check => ({
          name: "optional",
          status: "warning",
          message: `${name}: ${message}`,
        }),
      ),
    ];
  };
  return check(cli, "server", body, mayBeStopped);
}

async function accessChecks(cli: Cli): Promise<Check[]> {
  const { client, signal } = cli;
  return check(cli, "access", async () => {
    const { subject, tenant, roles } = await client.me({ signal });
    const held = roles.length === 0 ? "no roles" : `roles ${roles.join(", ")}`;
    return [
      { name: "access", status: "ok", message: `You are ${subject} of tenant ${tenant}, with ${held}.` },
    ];
  });
}

async function definitionProblems(
  folder: string,
  { main, variables }: WorkerModule,
  signal: AbortSignal,
): Promise<ProjectProblem[]> {
  const { refused, isLate } = await checkDefinitions(resolve(folder, main), variables, signal);
  signal.throwIfAborted();
  if (isLate)
    return [
      warning(
        `${main}: The definitions are not checked, because this module did not load within 10 seconds. Move work at its top into functions.`,
      ),
    ];
  return refused === undefined ? [] : [failed(`${main}: ${refused}`)];
}

async function projectChecks(folder: string | undefined, signal: AbortSignal): Promise<Check[]> {
  const project = checkProject(folder ?? process.cwd());
  if (project === null && folder !== undefined)
    throw new CommandFailure(
      `${folder} has no project: its package.json must name dramatis. Make a project: npx dramatis init ${folder}`,
    );
  if (project === null) return [];
  const { problems, worker } = project;
  if (worker !== undefined)
    problems.push(...(await definitionProblems(folder ?? process.cwd(), worker, signal)));
  if (problems.length === 0)
    return [{ name: "project", status: "ok", message: "The files of the project are right." }];
  return problems.map((problem) => ({ name: "project", ...problem }));
}

async function doctor(
  cli: Cli,
  [folder]: (string | undefined)[],
  { project, url }: Options,
): Promise<Answer> {
  const ofProject = await projectChecks(folder, cli.signal);
  const isProjectOnly = project !== undefined || folder !== undefined;
  // Without an address, the server of a project may be stopped.
  const mayBeStopped = ofProject.length > 0 && url === undefined && !process.env.DRAMATIS_URL;
  const server = isProjectOnly ? [] : await serverChecks(cli, mayBeStopped);
  const reached = server[0]?.status === "ok";
  const ofToken = isProjectOnly ? [] : tokenChecks(cli, Date.now());
  const checks = [...ofProject, ...server, ...ofToken, ...(reached ? await accessChecks(cli) : [])];
  const isBroken = checks.some(({ status }) => status === "failed");
  const text = checks
    .map(({ name, status, message }) => {
      const start = `${status.padEnd(9)}${name.padEnd(10)}`;
      return start + wrap(clean(message), cli.width - start.length).join(`\n${" ".repeat(start.length)}`);
    })
    .join("\n");
  return { value: { ok: !isBroken, url: cli.url, checks }, text, failed: isBroken };
}

export const DOCTOR_COMMANDS: readonly Command[] = [
  {
    name: "doctor",
    about: "checks the project in this folder, the server, the token and your roles",
    args: { "[folder]": "checks only the project in this folder" },
    options: { "--project": "checks only the project" },
    run: doctor,
  },
];
