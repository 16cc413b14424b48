/** Runs of workflows in the tests on workerd: posted, started and read over HTTP. */
import { runDurableObjectAlarm } from "cloudflare:test";
import { exports } from "cloudflare:workers";
import { expect, vi } from "vitest";
import type { RunEntryView, RunView } from "../../src/protocol/run-schemas.ts";
import type { Principal } from "../../src/shared/principal.ts";
import { ADA, request } from "./world.ts";

const ANY = { type: "array", items: {} };
let made = 0;

export interface Flow {
  nodes: object[];
  transitions?: object[];
  [field: string]: unknown;
}

/** Posts a workflow; returns its reference. */
export async function post(flow: Flow): Promise<string> {
  const id = `flow_${made++}`;
  const { nodes, transitions = [], initialNode = "start", ...more } = flow;
  const body = {
    id,
    inputSchema: { type: "object", properties: { key: { type: "string" }, items: ANY }, required: ["key"] },
    initialNode,
    nodes,
    transitions,
    ...more,
  };
  const response = await request("/api/libraries/flows/workflows", {
    method: "POST",
    body: JSON.stringify(body),
  });
  expect(response.status, await response.clone().text()).toBe(201);
  return `flows/${id}`;
}

/** Sends a request about runs; fails the test unless the status is the expected one. */
export async function call<Body = RunView>(
  method: string,
  path: string,
  status: number,
  body?: object,
  principal: Principal = ADA,
): Promise<Body> {
  const init = body === undefined ? { method } : { method, body: JSON.stringify(body) };
  const response = await request(`/api/runs${path}`, init, principal);
  const text = await response.text();
  expect(response.status, text).toBe(status);
  // SAFETY: what the API answers; tests assert the rest.
  return JSON.parse(text) as Body;
}

export async function start(
  flow: Flow,
  input: object = {},
  more: object = {},
): Promise<{ id: string; key: string }> {
  const key = crypto.randomUUID();
  const workflow = await post(flow);
  const { id } = await call("POST", "", 201, { workflow, input: { key, ...input }, ...more });
  return { id, key };
}

/** Lets the alarm of a run's actor fire, as the platform does. */
export async function wakeRun(id: string): Promise<void> {
  // SAFETY: the classes of the application are among the exports.
  const { Coordinator } = exports as unknown as { Coordinator: DurableObjectNamespace };
  await runDurableObjectAlarm(Coordinator.getByName(`test:${id}`));
}

/** Waits for the end of a run, so many milliseconds at most. */
export function ended(id: string, timeout = 20_000): Promise<RunView> {
  return vi.waitUntil(
    async () => {
      const run = await call("GET", `/${id}`, 200);
      return run.status === "running" || run.status === "waiting" ? undefined : run;
    },
    { timeout, interval: 20 },
  );
}

export async function journal(id: string): Promise<RunEntryView[]> {
  const all: RunEntryView[] = [];
  for (let cursor = ""; ; ) {
    const { entries, nextCursor } = await call<{ entries: RunEntryView[]; nextCursor?: string }>(
      "GET",
      `/${id}/journal?limit=20${cursor}`,
      200,
    );
    all.push(...entries);
    if (nextCursor === undefined) return all;
    cursor = `&cursor=${nextCursor}`;
  }
}

export const task = (ref: string, effect = "pure", more: object = {}, mapping: object = {}) => ({
  ref,
  task: `flow/work_${effect}`,
  inputMapping: { key: "input.key", name: `'${ref}'`, ...mapping },
  ...more,
});

export const fanOut = (effect: string, mapping: object, synchronization: object = {}): Flow => ({
  contextSchema: { type: "object", properties: { all: ANY } },
  nodes: [
    { ref: "start" },
    task(
      "work",
      effect,
      { outputMapping: { "output.value": "result.value" } },
      { value: "item", ...mapping },
    ),
    { ref: "end" },
  ],
  transitions: [
    {
      from: "start",
      to: "work",
      siblingGroup: "all",
      foreach: { collection: "input.items", itemVar: "item" },
    },
    {
      from: "work",
      to: "end",
      synchronization: {
        siblingGroup: "all",
        strategy: "all",
        merge: { source: "_branch.output.value", target: "state.all", strategy: "collect" },
        ...synchronization,
      },
    },
  ],
  outputMapping: { all: "state.all" },
});
