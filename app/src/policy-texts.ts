/** Display texts for the decisions of a policy. Pure. */
import type { ApprovalView } from "../../src/client/index.ts";

/** The rule that decided, its reason, and the untrusted origins in the request that led to the call. */
export type Decided = NonNullable<ApprovalView["policy"]>;

const ORIGIN_NAMES: Readonly<Record<NonNullable<Decided["taint"]>[number], string>> = {
  user: "a message",
  agent: "an earlier answer",
  tool: "a result of a tool",
  client: "a result of your own program",
  colleague: "words of another agent",
  document: "a document",
  import: "an imported text",
  memory: "a memory from such content",
};

/** Returns the untrusted origins as a sentence; `undefined` without one. */
export function taintText({ taint = [] }: Decided): string | undefined {
  if (taint.length === 0) return undefined;
  return `The call follows untrusted content: ${taint.map((origin) => ORIGIN_NAMES[origin] ?? origin).join(", ")}.`;
}

const VERBS: Readonly<Record<string, string>> = {
  "policy.denied": "Denied",
  "policy.asked": "Asks a person",
  "policy.allowed": "Allowed",
};

/** Returns an entry of a decision as text, such as `Denied by the rule "no-refunds". Refunds are for people.`; `undefined` for other entries. */
export function decisionText({ type, data }: { type: string; data?: unknown }): string | undefined {
  const verb = VERBS[type];
  if (verb === undefined) return undefined;
  const decided = (data ?? {}) as Decided;
  const by = decided.rule === undefined ? "" : ` by the rule "${decided.rule}"`;
  return [`${verb}${by}.`, decided.reason, taintText(decided)].filter((part) => part !== undefined).join(" ");
}
