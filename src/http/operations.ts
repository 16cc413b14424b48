/**
 * The operations of the API in the order of the documentation. All are routes, except `deliverToTrigger`: its signature covers the bytes of
 * the body, and all failed checks have the same answer.
 */
import { z } from "zod";
import { a2aRoutes } from "./a2a/routes.ts";
import { aguiRoutes } from "./agui/routes.ts";
import { json } from "./base/respond.ts";
import { chatCompletionRoutes } from "./openai/chat-completions.ts";
import { modelRoutes } from "./openai/models.ts";
import { responseRoutes } from "./openai/responses.ts";
import { type ApiDocument, apiDocument } from "./openapi/document.ts";
import { type ApiOperation, ok } from "./openapi/operation.ts";
import { type Route, route } from "./openapi/route.ts";
import { agentRoutes } from "./routes/agents.ts";
import { approvalRoutes } from "./routes/approvals.ts";
import { artifactRoutes } from "./routes/artifacts.ts";
import { attachmentRoutes } from "./routes/attachments.ts";
import { channelOperations } from "./routes/channels.ts";
import { chatRoutes } from "./routes/chat.ts";
import { conversationListRoutes } from "./routes/conversation-lists.ts";
import { conversationRoutes } from "./routes/conversations.ts";
import { deadLetterRoutes } from "./routes/dead-letters.ts";
import { deferredRoutes } from "./routes/deferred.ts";
import { eventLogRoutes } from "./routes/event-log.ts";
import { eventRoutes } from "./routes/events.ts";
import { gitRoutes } from "./routes/git.ts";
import { healthRoutes } from "./routes/health.ts";
import { libraryRoutes } from "./routes/libraries.ts";
import { listRoutes } from "./routes/lists.ts";
import { mcpServerRoutes } from "./routes/mcp-servers.ts";
import { meRoutes } from "./routes/me.ts";
import { memoryRoutes } from "./routes/memories.ts";
import { participantRoutes } from "./routes/participants.ts";
import { projectSecretRoutes } from "./routes/project-secrets.ts";
import { projectRoutes } from "./routes/projects.ts";
import { recordRoutes } from "./routes/record.ts";
import { remoteRoutes } from "./routes/remotes.ts";
import { replayRoutes } from "./routes/replays.ts";
import { runRoutes } from "./routes/runs.ts";
import { signalRoutes } from "./routes/signals.ts";
import { socketRoutes } from "./routes/sockets.ts";
import { traceRoutes } from "./routes/traces.ts";
import { triggerRoutes } from "./routes/triggers.ts";
import { turnListRoutes } from "./routes/turn-list.ts";
import { turnRoutes } from "./routes/turns.ts";
import { webhookOperations } from "./routes/webhooks.ts";
import { workspaceRoutes } from "./routes/workspaces.ts";

export const OPERATIONS: readonly (ApiOperation | Route)[] = [
  ...agentRoutes,
  ...memoryRoutes,
  ...libraryRoutes,
  ...mcpServerRoutes,
  ...projectRoutes,
  ...projectSecretRoutes,
  ...remoteRoutes,
  ...gitRoutes,
  ...artifactRoutes,
  ...conversationListRoutes,
  ...conversationRoutes,
  ...recordRoutes,
  ...participantRoutes,
  ...attachmentRoutes,
  ...workspaceRoutes,
  ...turnRoutes,
  ...traceRoutes,
  ...replayRoutes,
  ...runRoutes,
  ...approvalRoutes,
  ...turnListRoutes,
  ...eventLogRoutes,
  ...triggerRoutes,
  ...webhookOperations,
  ...channelOperations,
  ...signalRoutes,
  ...deferredRoutes,
  ...eventRoutes,
  ...chatRoutes,
  ...socketRoutes,
  ...modelRoutes,
  ...chatCompletionRoutes,
  ...responseRoutes,
  ...aguiRoutes,
  ...a2aRoutes,
  ...deadLetterRoutes,
  ...healthRoutes,
  ...meRoutes,
  ...listRoutes,
  ...descriptionRoutes(() => OPERATIONS),
];

/** All routes that need authentication. */
export const AUTHENTICATED_ROUTES: readonly Route[] = OPERATIONS.filter(
  (operation) => "handle" in operation,
).filter(({ open }) => open !== true);

/** `operations` returns all operations of the application. The first request for the document builds it. */
function descriptionRoutes(operations: () => readonly ApiOperation[]): Route[] {
  let document: ApiDocument | undefined;
  return [
    route({
      id: "getDescription",
      method: "get",
      path: "/openapi.json",
      tag: "runtime",
      summary: "Read this description",
      answers: ok("An OpenAPI 3.1 document.", z.looseObject({})),
      handle: () => {
        document ??= apiDocument(operations());
        return json(document);
      },
    }),
  ];
}
