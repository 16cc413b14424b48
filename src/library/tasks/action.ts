/**
 * Actions: what the steps of tasks do, by kind.
 *
 * ACTION-1  An action is of a kind that exists, with the options of its kind. Any other one is refused where its task is defined.
 */
import { z } from "zod";
import type { ToolEffect } from "../../protocol/definitions.ts";
import type { Mapping } from "../../shared/expressions/mapping.ts";
import type { Tool } from "../define.ts";
import { MAX_TIMEOUT_MS } from "../schemas.ts";
import { hostProblem } from "./host-rules.ts";
import { MAX_ACTION_HOSTS } from "./limits.ts";

/** A function of the deployed code: made by `defineAction`, or a task of one function. */
export interface CodeAction extends Tool {
  readonly kind: "code";
}

/** Computes the members of an object from the task's input, state and output. */
export interface UpdateContextAction {
  readonly kind: "update_context";
  /** The members: expressions over `input`, `state` and `output`. */
  readonly values: Mapping;
}

/** Requests over HTTP: the input is `{url, method?, headers?, body?}`, the result `{status, headers, body}`. */
export interface HttpRequestAction {
  readonly kind: "http.request";
  /** The hosts that it may reach: `host` or `host:port`. */
  readonly hosts: readonly string[];
  /** Effect of a request that is made twice: `once` when absent. */
  readonly effect?: ToolEffect;
  /** Time of a request with its redirects, in milliseconds: 60 000 when absent, 900 000 at most. */
  readonly timeoutMs?: number;
}

/** What a step does. */
export type Action = CodeAction | UpdateContextAction | HttpRequestAction;

interface ActionKind<Kind extends Action> {
  schema: z.ZodType;
  /** The expressions of the action, by their place. */
  mappings?(action: Kind): { path: string; mapping: Mapping }[];
  effect(action: Kind): ToolEffect;
}

const KINDS: { [Name in Action["kind"]]: ActionKind<Extract<Action, { kind: Name }>> } = {
  code: {
    schema: z.looseObject({
      id: z.string(),
      definition: z.looseObject({ effect: z.enum(["pure", "idempotent", "once"]), timeoutMs: z.number() }),
      run: z.custom((value) => typeof value === "function", "Must be a function."),
    }),
    effect: ({ definition }) => definition.effect,
  },
  update_context: {
    schema: z.strictObject({
      kind: z.string(),
      values: z.record(z.string().min(1).max(200), z.string().min(1)),
    }),
    mappings: ({ values }) => [{ path: "/values", mapping: values }],
    effect: () => "pure",
  },
  "http.request": {
    schema: z.strictObject({
      kind: z.string(),
      hosts: z
        .array(z.string().superRefine(checkHost))
        .min(1, "Must name the hosts that it may reach.")
        .max(MAX_ACTION_HOSTS),
      effect: z.exactOptional(z.enum(["pure", "idempotent", "once"])),
      timeoutMs: z.exactOptional(z.int().min(1).max(MAX_TIMEOUT_MS)),
    }),
    effect: ({ effect = "once" }) => effect,
  },
};

function checkHost(host: string, context: z.RefinementCtx<string>): void {
  const message = hostProblem(host);
  if (message !== null) context.addIssue({ code: "custom", message });
}

/** The kinds of actions that exist. */
export const ACTION_KINDS = Object.keys(KINDS) as Action["kind"][];

/** Returns the kind of an action. */
export function kindOf<Kind extends Action>({ kind }: Kind): ActionKind<Kind> {
  // SAFETY: the table has each kind under its own name.
  return KINDS[kind] as unknown as ActionKind<Kind>;
}

/** Reports whether a value names a kind that exists. */
export function isKind(kind: unknown): kind is Action["kind"] {
  return typeof kind === "string" && Object.hasOwn(KINDS, kind);
}
