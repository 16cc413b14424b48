/**
 * The REST binding of A2A: its paths and queries as methods with parameters. Pure.
 *
 * A2A-11  Each request of REST is a method of JSON-RPC with the same parameters. So both bindings have the same handlers.
 */

/** A method with its parameters. */
export interface MethodCall {
  method: string;
  params: unknown;
}

const MESSAGES: Readonly<Record<string, string>> = {
  "message:send": "SendMessage",
  "message:stream": "SendStreamingMessage",
};

/** Returns the method of a path such as `message:send`; `undefined` for other paths. */
export function messageMethod(path: string): string | undefined {
  return Object.hasOwn(MESSAGES, path) ? MESSAGES[path] : undefined;
}

/**
 * Reads a task in a path: its id, and a verb after the last colon. The ids of tasks have colons, so only known verbs count. `subscribe`
 * streams the task with every HTTP method: releases of A2A differ about it.
 */
export function taskCall(
  path: string,
  httpMethod: string,
): (MethodCall & { params: { id: string } }) | undefined {
  const [, id = path, verb] = /^(.*):(cancel|subscribe)$/.exec(path) ?? [];
  const params = { id };
  if (verb === "subscribe") return { method: "SubscribeToTask", params };
  if (verb === "cancel") return httpMethod === "POST" ? { method: "CancelTask", params } : undefined;
  return httpMethod === "GET" ? { method: "GetTask", params } : undefined;
}

const NUMBERS = ["historyLength", "pageSize"];
const BOOLEANS: Readonly<Record<string, boolean>> = { true: true, false: false };

/** Returns the parameters of a query. A value of another form stays as text, and the method refuses it. */
export function queryParams(query: Readonly<Record<string, string>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(query).map(([name, text]) => {
      if (NUMBERS.includes(name) && /^-?[0-9]{1,15}$/.test(text)) return [name, Number(text)];
      if (name === "includeArtifacts") return [name, BOOLEANS[text] ?? text];
      return [name, text];
    }),
  );
}
