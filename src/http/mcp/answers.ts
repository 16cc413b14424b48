/** Answers of the person at the client, given with the rights of the principal (MCP-8). */
import { approvalOf, type GivenAnswer, gateAnswerOf } from "../../compat/mcp/questions.ts";
import { unwrap } from "../../shared/errors.ts";
import type { RequestVariables } from "../base/context.ts";
import { findConversation } from "../routes/conversations.ts";

/**
 * Gives answers to their turns and runs. Before the first answer counts, the others are checked, so a wrong answer leaves no other with an
 * effect. The first answer is checked when it is given.
 * `each` runs each check and each answer; it may take errors. An answer of a person who closed the form is none.
 */
export async function giveAnswers(
  ports: RequestVariables,
  answers: readonly GivenAnswer[],
  each: (act: Promise<void>) => Promise<void> = (act) => act,
): Promise<void> {
  for (const answer of answers.slice(1)) await each(giveAnswer(ports, answer, true));
  for (const answer of answers) await each(giveAnswer(ports, answer, false));
}

/** Gives an answer, or only checks it. */
async function giveAnswer(
  { actors, principal }: RequestVariables,
  given: GivenAnswer,
  isCheck: boolean,
): Promise<void> {
  const { place } = given;
  if ("runId" in place) {
    const answer = gateAnswerOf(given);
    if (answer === undefined) return;
    const run = await actors.coordinator(principal.tenant, place.runId);
    const args = [principal, place.operationId, answer] as const;
    unwrap<unknown>(isCheck ? await run.hasHumanInput(...args) : await run.submitHumanInput(...args));
    return;
  }
  const approval = approvalOf(given);
  const conversation = await findConversation({ actors, principal }, place.conversationId);
  if (approval === undefined) return;
  const args = [principal, place.operationId, approval] as const;
  unwrap<unknown>(
    isCheck ? await conversation.hasApproval(...args) : await conversation.resolveApproval(...args),
  );
}
