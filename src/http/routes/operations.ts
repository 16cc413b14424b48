/** All operations, in the order in which they are shown. */

import type { Operation } from "../openapi/operation.ts";
import { agentOperations } from "./agents.ts";
import { attachmentOperations } from "./attachments.ts";
import { chatOperations } from "./chat.ts";
import { conversationOperations } from "./conversations.ts";
import { deadLetterOperations } from "./dead-letters.ts";
import { eventOperations } from "./events.ts";
import { healthOperations } from "./health.ts";
import { libraryOperations } from "./library-operations.ts";
import { chatOperations as completionOperations } from "./openai/chat-completions.ts";
import { modelOperations } from "./openai/models.ts";
import { responseOperations } from "./openai/responses.ts";
import { descriptionOperations } from "./openapi.ts";
import { socketOperations } from "./sockets.ts";
import { turnOperations } from "./turns.ts";

export const OPERATIONS: readonly Operation[] = [
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
