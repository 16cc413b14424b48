/** A message that is being sent or was rejected. */
import { memo } from "react";
import type { PendingMessage } from "../../../src/client/index.ts";
import { UserMessage } from "./user-message.tsx";

interface PendingItemProps {
  message: PendingMessage;
  onRetry: (clientId: string) => void;
  onDiscard: (clientId: string) => void;
}

export const PendingItem = memo(function PendingItem({ message, onRetry, onDiscard }: PendingItemProps) {
  const { clientId, content, createdAt, status, error } = message;
  return (
    <UserMessage content={content} createdAt={createdAt} faint={status === "sending"}>
      {status === "sending" ? (
        <p className="text-xs text-muted">Sending…</p>
      ) : (
        <p role="alert" className="flex flex-wrap justify-end gap-x-3 text-sm text-danger">
          <span>Not sent: {error?.message}</span>
          <button type="button" onClick={() => onRetry(clientId)} className="font-medium underline">
            Send again
          </button>
          <button type="button" onClick={() => onDiscard(clientId)} className="font-medium underline">
            Discard
          </button>
        </p>
      )}
    </UserMessage>
  );
});
