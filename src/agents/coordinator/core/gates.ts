/**
 * Gates: nodes that ask a person. Pure.
 *
 * RUNGATE-1  A gate waits until its answer fits its schema, or until its deadline. An answer that does not fit is rejected and changes
 *            nothing.
 * RUNGATE-2  The first answer is kept, with its author. An identical answer is a no-op. A different answer is a `CONFLICT`.
 */
import type { AnsweredBy } from "../../../protocol/approval.ts";
import type { HumanAction } from "../../../protocol/task-definition.ts";
import { conflict, type InputIssue, invalid } from "../../../shared/errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../../../shared/json.ts";
import { Meter } from "../../../shared/json-schema/meter.ts";
import { misfits } from "../../../shared/json-schema/violations.ts";
import { render } from "../../../shared/templates/template.ts";
import type { Draft, RunChange } from "./draft.ts";
import { evaluatedMapping } from "./evaluation.ts";
import type { RunRecord } from "./record.ts";
import { MAX_TOKEN_STEPS } from "./run-limits.ts";
import { answerOvertime, OVERTIME, openGate } from "./run-time.ts";
import type { GateAnswered } from "./signals.ts";
import { isOver, type RunState, resolved, type Working } from "./state.ts";
import { workOf } from "./work.ts";

/** Returns the rule of a gate, with the requester, who is the starter of the run. Returns `{}` without a rule. */
export function gateAnsweredBy(
  { startedBy }: Pick<RunRecord, "startedBy">,
  { approval }: HumanAction,
): AnsweredBy {
  return approval === undefined ? {} : { rule: approval, requester: startedBy };
}

export function changesGates(
  before: RunState,
  { state, entries }: Pick<RunChange, "state" | "entries">,
): boolean {
  if (isOver(before) !== isOver(state)) return true;
  return entries.some(({ type, token = -1 }) => {
    if (type === "token.cancelled") return isGate(before, token);
    return type === "gate.opened" || type === "gate.answered" || type === "gate.expired";
  });
}

function isGate({ record, tokens }: RunState, id: number): boolean {
  const token = tokens.get(id);
  return token !== undefined && workOf(record, token)?.kind === "gate";
}

const COMMENT = { type: "string", maxLength: 10_000 };
const APPROVED = { type: "boolean" };

export function answerSchema({ kind, schema = {} }: HumanAction): JsonObject {
  switch (kind) {
    case "human.input":
      return schema;
    case "human.approve":
      return verdict();
    case "human.review":
      return verdict(schema, true);
    default:
      return kind satisfies never;
  }
}

/** References of the schema of `changes` lead to its definitions, which are shown at the top. */
function verdict(
  { $defs, ...changes }: JsonObject | { $defs?: undefined } = {},
  isReview = false,
): JsonObject {
  const properties = { approved: APPROVED, comment: COMMENT, ...(isReview && { changes }) };
  const definitions = $defs === undefined ? {} : { $defs };
  return { type: "object", properties, required: ["approved"], additionalProperties: false, ...definitions };
}

/** Returns the question of a gate and the input of its step, as people see them. Throws `TokenFailure` and `ExpressionError`. */
export function opened(
  draft: Draft,
  node: string,
  question: HumanAction,
  given: JsonObject,
  meter: Meter,
): Pick<Working, "input" | "prompt" | "deadline"> {
  const { task } = draft.before.record.workflow.tasks[node] ?? {};
  const { inputMapping } = task?.steps[0] ?? {};
  const input =
    inputMapping === undefined
      ? given
      : evaluatedMapping(
          inputMapping,
          { input: given, state: {}, output: {} },
          meter,
          `The input of "${node}"`,
        );
  const prompt = render(question.prompt, input, meter);
  return {
    input,
    prompt,
    ...(question.timeoutMs === undefined ? {} : { deadline: draft.now + question.timeoutMs }),
  };
}

/** Applies the answer of a person. Throws `CONFLICT` if the token has no gate, and `INVALID_INPUT`. */
export function answerGate(draft: Draft, { token: id, answer, by }: GateAnswered): void {
  if (id === openGate(draft)) {
    checkAnswer(OVERTIME, answer);
    draft.note({ type: "gate.answered", data: { by, answer } });
    answerOvertime(draft, isJsonObject(answer) && answer.approved === true);
    return;
  }
  const token = draft.tokens.get(id);
  const work = token === undefined ? undefined : workOf(draft.before.record, token);
  // The expiry of gates may have failed before this answer.
  const { deadline = Number.POSITIVE_INFINITY } = token?.phase.kind === "working" ? token.phase : {};
  if (token?.phase.kind !== "working" || work?.kind !== "gate" || deadline <= draft.now)
    throw conflict("This gate no longer waits for an answer.");
  checkAnswer(work.question, answer);
  draft.noteOf(token, "gate.answered", { by, answer });
  draft.change(id, { phase: resolved(token.phase, { output: answer }) });
}

function checkAnswer(question: HumanAction, answer: Json): void {
  const { kind, schema = {} } = question;
  // References inside the schema of `changes` mean that schema, so the changes are checked alone.
  const isReview = kind === "human.review";
  const errors = checked(isReview ? verdict({}, true) : answerSchema(question), answer);
  if (isReview && isJsonObject(answer) && answer.changes !== undefined)
    errors.push(...checked(schema, answer.changes, "/changes"));
  if (errors.length > 0)
    throw invalid("The answer does not fit the schema of the gate.", {
      errors: errors.map(({ path, message }) => ({ path: `/answer${path}`, message })),
    });
}

function checked(schema: JsonObject, value: Json, path = ""): InputIssue[] {
  const errors = misfits(schema, value, new Meter(MAX_TOKEN_STEPS)) ?? [
    { path: "", message: "cannot be checked" },
  ];
  return errors.map((error) => ({ path: `${path}${error.path}`, message: error.message }));
}

/** Ends the gates after their deadline. */
export function closeGates(draft: Draft): void {
  for (const token of [...draft.tokens.values()]) {
    const { id, node, phase } = token;
    if (phase.kind !== "working" || phase.deadline === undefined || phase.deadline > draft.now) continue;
    const error = { code: "TIMEOUT", message: `The deadline for an answer to "${node}" has passed.` };
    draft.noteOf(token, "gate.expired", { error });
    draft.change(id, { phase: resolved(phase, { error }) });
  }
}
