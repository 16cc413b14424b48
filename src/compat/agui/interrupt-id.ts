/** The ids of interrupts: a call, and the question behind the call if there is one. Pure. */
import { defined } from "../../shared/defined.ts";
import { givenAnswer, questionKey } from "../mcp/questions.ts";

const SEPARATOR = "|";

/** The place of an interrupt: a call that needs an approval, or a question behind a call. */
export interface InterruptPlace {
  call: { conversationId: string; turnId: string; operationId: string };
  /** A gate of the workflow that the call runs. */
  gate?: { runId: string; operationId: string };
  /** The number of the question that an MCP server asks during the call. */
  round?: number;
}

export function interruptId({ call, gate, round }: InterruptPlace): string {
  const behind = gate === undefined ? round : questionKey(gate);
  return [questionKey(call), ...(behind === undefined ? [] : [behind])].join(SEPARATOR);
}

/** Returns the place of an interrupt; `undefined` for another text. */
export function parseInterruptId(id: string): InterruptPlace | undefined {
  const [first = "", behind, ...rest] = id.split(SEPARATOR);
  const call = placeOf(first);
  if (call === undefined || "runId" in call || rest.length > 0) return undefined;
  if (behind === undefined) return { call };
  if (/^[1-9]\d{0,3}$/.test(behind)) return { call, round: Number(behind) };
  const gate = placeOf(behind);
  return gate === undefined || !("runId" in gate) ? undefined : { call, ...defined({ gate }) };
}

function placeOf(key: string) {
  return givenAnswer(key, { action: "accept" })?.place;
}
