/** All operations, in the order in which they are shown. */

import { descriptionOperations } from "./api-description.ts";
import { completionOperations } from "./openai/chat-completions.ts";
import { modelOperations } from "./openai/models.ts";
import { responseOperations } from "./openai/responses.ts";
import type { ApiOperation } from "./openapi/operation.ts";
import { agentOperations } from "./routes/agents.ts";
import { attachmentOperations } from "./routes/attachments.ts";
import { chatOperations } from "./routes/chat.ts";
import { conversationOperations } from "./routes/conversations.ts";
import { deadLetterOperations } from "./routes/dead-letters.ts";
import { eventOperations } from "./routes/events.ts";
import { healthOperations } from "./routes/health.ts";
import { libraryOperations } from "./routes/library-operations.ts";
import { socketOperations } from "./routes/sockets.ts";
import { turnOperations } from "./routes/turns.ts";

export const OPERATIONS: readonly ApiOperation[] = [
  ...agentOperations,
  ...libraryOperations,
  ...conversationOperations,
  ...attachmentOperations,
  ...turnOperations,
  ...eventOperations,
  ...chatOperations,
  ...socketOperations,
  ...modelOperations,
  ...completionOperations,
  ...responseOperations,
  ...deadLetterOperations,
  ...healthOperations,
  ...descriptionOperations,
];
