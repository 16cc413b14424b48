/** Events of the Agents SDK's channels, in our form. */
import type { ChannelIngressEventInput } from "agents/experimental/channels";
import type { ChannelEvent } from "../../../protocol/channels.ts";
import type { Json } from "../../../shared/json.ts";

export function eventOf(event: ChannelIngressEventInput, text: string): ChannelEvent {
  const { eventId, thread, replySurface, actor } = event;
  return {
    ...{ id: eventId, thread: thread.id, sender: actor?.id ?? "", text },
    // SAFETY: a surface is JSON by its definition.
    surface: (replySurface?.address ?? null) as Json,
    isDirect: thread.isDirectMessage === true,
    isMention: event.type === "message" && event.message.isMention === true,
    isAutomatic:
      actor?.isBot === true ||
      actor?.isSelf === true ||
      (event.type === "message" && event.message.metadata?.autoReply === true),
    ...(event.type === "approval-response" && {
      answer: { operationId: event.approvalId, approved: event.decision === "approve" },
    }),
  };
}
