/** Answers of the person at the client, given with the rights of the principal (MCP-8). */
import { approvalOf, type GivenAnswer, gateAnswerOf } from "../../compat/mcp/questions.ts";
import { unwrap } from "../../shared/errors.ts";
import { findConversation } from "../routes/conversations.ts";
import type { McpRequest } from "./call.ts";

/** Gives an answer to its turn or run. It is a no-op if the person closed the form. */
export async function giveAnswer(
  { actors, principal }: McpRequest["ports"],
  given: GivenAnswer,
): Promise<void> {
  const { place } = given;
  if ("runId" in place) {
    const answer = gateAnswerOf(given);
    const run = await actors.coordinator(principal.tenant, place.runId);
    if (answer !== undefined) unwrap(await run.submitHumanInput(principal, place.operationId, answer));
    return;
  }
  const approval = approvalOf(given);
  const conversation = await findConversation({ actors, principal }, place.conversationId);
  if (approval !== undefined)
    unwrap(await conversation.resolveApproval(principal, place.operationId, approval));
}
