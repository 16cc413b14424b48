/** The routes of the API, and their descriptions in the order of the documentation. */

import { descriptionOperations, descriptionRoutes } from "./api-description.ts";
import type { HttpRoutes } from "./base/context.ts";
import { chatCompletionRoutes, completionOperations } from "./openai/chat-completions.ts";
import { modelOperations, modelRoutes } from "./openai/models.ts";
import { responseOperations, responseRoutes } from "./openai/responses.ts";
import type { ApiOperation } from "./openapi/operation.ts";
import { agentOperations, agentRoutes } from "./routes/agents.ts";
import { approvalOperations, approvalRoutes } from "./routes/approvals.ts";
import { attachmentOperations, attachmentRoutes } from "./routes/attachments.ts";
import { chatOperations, chatRoutes } from "./routes/chat.ts";
import { conversationOperations, conversationRoutes } from "./routes/conversations.ts";
import { deadLetterOperations, deadLetterRoutes } from "./routes/dead-letters.ts";
import { deferredOperations } from "./routes/deferred.ts";
import { eventOperations, eventRoutes } from "./routes/events.ts";
import { healthOperations } from "./routes/health.ts";
import { hookOperations } from "./routes/hooks.ts";
import { libraryRoutes } from "./routes/libraries.ts";
import { libraryOperations } from "./routes/library-operations.ts";
import { meOperations, meRoutes } from "./routes/me.ts";
import { memoryRoutes } from "./routes/memories.ts";
import { memoryOperations } from "./routes/memory-operations.ts";
import { participantOperations, participantRoutes } from "./routes/participants.ts";
import { runOperations, runRoutes } from "./routes/runs.ts";
import { signalOperations, signalRoutes } from "./routes/signals.ts";
import { socketOperations, socketRoutes } from "./routes/sockets.ts";
import { traceOperations, traceRoutes } from "./routes/traces.ts";
import { triggerOperations, triggerRoutes } from "./routes/triggers.ts";
import { turnOperations, turnRoutes } from "./routes/turns.ts";

export const OPERATIONS: readonly ApiOperation[] = [
  ...agentOperations,
  ...memoryOperations,
  ...libraryOperations,
  ...conversationOperations,
  ...participantOperations,
  ...attachmentOperations,
  ...turnOperations,
  ...traceOperations,
  ...runOperations,
  ...approvalOperations,
  ...triggerOperations,
  ...hookOperations,
  ...signalOperations,
  ...deferredOperations,
  ...eventOperations,
  ...chatOperations,
  ...socketOperations,
  ...modelOperations,
  ...completionOperations,
  ...responseOperations,
  ...deadLetterOperations,
  ...healthOperations,
  ...meOperations,
  ...descriptionOperations,
];

/** Adds all routes that need authentication. */
export function authenticatedRoutes(app: HttpRoutes): void {
  agentRoutes(app);
  memoryRoutes(app);
  libraryRoutes(app);
  conversationRoutes(app);
  participantRoutes(app);
  attachmentRoutes(app);
  turnRoutes(app);
  traceRoutes(app);
  runRoutes(app);
  approvalRoutes(app);
  triggerRoutes(app);
  signalRoutes(app);
  eventRoutes(app);
  chatRoutes(app);
  socketRoutes(app);
  modelRoutes(app);
  chatCompletionRoutes(app);
  responseRoutes(app);
  deadLetterRoutes(app);
  meRoutes(app);
  descriptionRoutes(app, OPERATIONS);
}
