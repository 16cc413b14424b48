/** The shapes of identifiers that a URL or a body may name. An id of another shape cannot exist. */
import type { CallTrail } from "./call-trail.ts";
import { JURISDICTION_SUFFIX } from "./location.ts";

const ULID = "[0-9A-HJKMNP-TV-Z]{26}";
export const CONVERSATION_ID = new RegExp(`^conv_${ULID}${JURISDICTION_SUFFIX}$`);
export const RUN_ID = new RegExp(`^run_${ULID}${JURISDICTION_SUFFIX}$`);
export const TRIGGER_ID = new RegExp(`^trig_${ULID}${JURISDICTION_SUFFIX}$`);
export const TURN_ID = new RegExp(`^turn_${ULID}$`);
/** Ids carry a time of 48 bits, so the first digit of a ULID is at most 7. */
const OPERATION_ID = /^op_[0-7][0-9A-HJKMNP-TV-Z]{25}$/;
const NAME = "[a-z0-9][a-z0-9-]{0,63}";
const TENANT_NAME = new RegExp(`^${NAME}$`);
export const AGENT_ID = new RegExp(`^${NAME}${JURISDICTION_SUFFIX}$`);
/** An agent's id after `@`, unless a word, address or path ends before it. */
export const MENTION = new RegExp(
  String.raw`(?<![\w@./+-])@(${NAME}${JURISDICTION_SUFFIX})(?![a-z0-9_-])`,
  "gi",
);
export const DEFINITION_ID = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;

/** `conv_` and a ULID; in a jurisdiction `_` and its name follow. */
export function isConversationId(value: string): boolean {
  return CONVERSATION_ID.test(value);
}

/** `turn_` and 26 characters of Crockford's base 32. */
export function isTurnId(value: string): boolean {
  return TURN_ID.test(value);
}

/** `op_` and a ULID. */
export function isOperationId(value: unknown): value is string {
  return typeof value === "string" && OPERATION_ID.test(value);
}

/** A name, in a jurisdiction `_` and its name follow. */
export function isAgentId(value: string): boolean {
  return AGENT_ID.test(value);
}

/** Names of tenants in tokens. */
export function isTenantName(value: string): boolean {
  return TENANT_NAME.test(value);
}

/** `library/id`, `library/id@version`, or the same as an object. Without a version it resolves to the latest one. */
export type DefinitionReference = string | { library: string; id: string; version?: number };

/** The workspace of a conversation or a run, as its caller chose it. */
export interface WorkspaceLink {
  /** The id of the workspace. Absent: it has a workspace of its own. */
  id?: string;
  /** The id of another workspace. The workspace begins at its branch. Absent: it begins at the default branch. */
  from?: string;
}

interface CallOrigin extends CallTrail {
  tenant: string;
  projectId: string;
  /** Absent: its own workspace, which begins at the default branch. */
  workspace?: WorkspaceLink;
}

interface TurnCallContext extends CallOrigin {
  agentId: string;
  conversationId: string;
  turnId: string;
  runId?: never;
  node?: never;
}

interface RunCallContext extends CallOrigin {
  runId: string;
  /** The `ref` of the node in the workflow. */
  node: string;
  agentId?: never;
  conversationId?: never;
  turnId?: never;
}

/**
 * The origin of a call: a turn of a conversation, or a run of a workflow. One check of `conversationId`, or of `runId`, narrows
 * all members.
 *
 * @example
 * function caller(context: CallContext): string {
 *   if (context.runId !== undefined) return `node ${context.node} of ${context.runId}`;
 *   return `agent ${context.agentId} in ${context.conversationId}`;
 * }
 */
export type CallContext = TurnCallContext | RunCallContext;
