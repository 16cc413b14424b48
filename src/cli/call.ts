/**
 * `dramatis call`: each operation of the API, by its name in the server's own OpenAPI document.
 *
 * CLICALL-1  A call is checked against the document before it is sent. An unknown operation or parameter is named with the known ones.
 */
import { notJson } from "../client/errors.ts";
import { listIds } from "../shared/known-ids.ts";
import type { Cli, Command, Options } from "./command.ts";
import { wrongUsage } from "./failure.ts";
import { chunksOf, readInput } from "./input.ts";
import { jsonText, table } from "./text.ts";

/** Operations that a failure names instead of an unknown operation. */
const MAX_SIMILAR = 3;

interface Parameter {
  name: string;
  in: "path" | "query" | "header";
}

export interface Operation {
  id: string;
  method: string;
  path: string;
  summary: string;
  parameters: Parameter[];
  takesBody: boolean;
}

interface Described {
  operationId?: string;
  summary?: string;
  parameters?: Parameter[];
  requestBody?: unknown;
}

export function operationsOf(document: { paths?: Record<string, Record<string, Described>> }): Operation[] {
  return Object.entries(document.paths ?? {}).flatMap(([path, methods]) =>
    Object.entries(methods).map(
      ([method, { operationId = "", summary = "", parameters = [], requestBody }]) => ({
        ...{ id: operationId, method: method.toUpperCase(), path, summary, parameters },
        takesBody: requestBody !== undefined || method === "post",
      }),
    ),
  );
}

/** Returns the path of a call with its query. Throws a failure that names the known parameters (CLICALL-1). */
export function callPath({ id, path, parameters }: Operation, given: readonly string[]): string {
  const usable = parameters.filter((parameter) => parameter.in !== "header");
  const known = usable.map(({ name }) => name).join(", ") || "none";
  const query = new URLSearchParams();
  const values = new Map<string, string>();
  for (const text of given) {
    const [, name = "", value = ""] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
    const parameter = usable.find((parameter) => parameter.name === name);
    if (parameter === undefined)
      throw wrongUsage(`"${text}" is no parameter of ${id}. Write NAME=VALUE. Parameters: ${known}.`);
    if (parameter.in === "query") query.append(name, value);
    else values.set(name, value);
  }
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const value = values.get(name);
    if (!value) throw wrongUsage(`${id} needs ${name}=VALUE. Parameters: ${known}.`);
    return encodeURIComponent(value);
  });
  return query.size === 0 ? filled : `${filled}?${query}`;
}

async function readOperations({ request }: Cli): Promise<Operation[]> {
  const response = await request("GET", "/openapi.json");
  const document: unknown = await response.json().catch((cause: unknown) => {
    throw notJson(response, cause);
  });
  // SAFETY: the server makes the document.
  return operationsOf(document as Parameters<typeof operationsOf>[0]);
}

async function call(cli: Cli, [id, ...given]: (string | undefined)[], { body }: Options) {
  const operations = await readOperations(cli);
  if (id === undefined) {
    const columns = [{ title: "OPERATION" }, { title: "SUMMARY", free: true }] as const;
    return {
      value: operations,
      text: table(
        columns,
        operations.map(({ id, summary }) => [id, summary]),
        cli.width,
      ),
    };
  }
  const operation = operations.find((operation) => operation.id === id);
  if (operation === undefined) {
    const names = operations.map((operation) => operation.id);
    throw wrongUsage(
      `There is no operation "${id}". Similar: ${listIds(id, names, MAX_SIMILAR)}. List the operations with: dramatis call`,
    );
  }
  if (body !== undefined && !operation.takesBody) throw wrongUsage(`${id} takes no --body.`);
  const path = callPath(
    operation,
    given.filter((text) => text !== undefined),
  );
  const sent = body?.startsWith("@")
    ? await readInput(body.slice(1))
    : body === "-"
      ? await readInput("-")
      : body;
  const response = await cli.request(operation.method, path, sent === undefined ? {} : { body: sent });
  if (/^application\/json\b/.test(response.headers.get("content-type") ?? "")) {
    const value: unknown = await response.json();
    return { value, text: jsonText(value, 2) };
  }
  if (response.body !== null) for await (const chunk of chunksOf(response.body)) await cli.write(chunk);
  return undefined;
}

export const CALL_COMMANDS: readonly Command[] = [
  {
    name: "call",
    about: "calls any operation of the API; without an operation, lists them",
    args: {
      "[operation]": "such as listJournal",
      "[parameters...]": "NAME=VALUE, for the path and the query",
    },
    options: { "--body <json>": "body of the request; @FILE reads a file, - reads standard input" },
    run: call,
  },
];
