/**
 * The gate: decides, before a call of a tool runs, whether the call is allowed, denied, or asks a person. The model gets
 * `PERMISSION_DENIED` for a denied call.
 */
import type { Taint } from "../model/taint.ts";
import type { ToolDefinition } from "../protocol/definitions.ts";
import type { JsonObject } from "../shared/json.ts";
import { cut } from "../shared/text.ts";

export interface GateContext {
  tenant: string;
  projectId: string;
  agentId: string;
  conversationId: string;
  /** The id of the call, unique in its turn. */
  toolCallId: string;
  /** The untrusted origins in the request that led to the call. Empty for a trusted request. */
  taint: Taint;
}

export const DECISIONS = ["allow", "deny", "ask"] as const;

/** `ask`: the call waits for the approval of a person. */
export type Decision = (typeof DECISIONS)[number];

/** A decision with the rule that made it. */
export interface Verdict {
  decision: Decision;
  /** The id of the rule. The journal, errors and requests for approval name it. Absent if no rule decided. */
  rule?: string;
  /** A sentence for the model and for people. */
  reason?: string;
}

/**
 * Decides about one call of a tool. A gate that throws denies the call.
 * @example (tool, input, { tenant }) => (tool.name === "refund" && tenant !== "acme" ? "deny" : "allow")
 */
export type Gate = (tool: ToolDefinition, input: JsonObject, context: GateContext) => Decision | Verdict;

/** The default gate. */
export const allowAll: Gate = () => "allow";

/** Returns the gate with the strictest answer of several gates: `deny`, then `ask`, then `allow`. The first of equal answers counts. */
export function strictestOf(...gates: readonly Gate[]): Gate {
  return (...call) => {
    const verdicts = gates.map((gate) => verdictOf(gate(...call)));
    const find = (wanted: Decision) => verdicts.find(({ decision }) => decision === wanted);
    return find("deny") ?? find("ask") ?? verdicts.find(({ rule }) => rule !== undefined) ?? "allow";
  };
}

/** Characters of a rule and of a reason. */
export const MAX_RULE = 64;
const MAX_REASON = 500;

/** Returns an answer of a gate as a verdict. An unknown answer denies, and other members are left out. */
export function verdictOf(answer: Decision | Verdict): Verdict {
  const { decision, rule, reason } = typeof answer === "object" ? (answer ?? {}) : { decision: answer };
  if (decision === undefined || !DECISIONS.includes(decision)) return { decision: "deny" };
  return {
    decision,
    ...(typeof rule === "string" && { rule: cut(rule, MAX_RULE) }),
    ...(typeof reason === "string" && { reason: cut(reason, MAX_REASON) }),
  };
}
