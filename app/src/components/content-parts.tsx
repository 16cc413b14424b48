/** A user's content as it was sent: text as text, its own images as images, everything else as a link or by name. */
import { useContext } from "react";
import type { Content, MediaPart } from "../../../src/client/index.ts";
import { ConversationId } from "../conversation-id.ts";

export function ContentParts({ content }: { content: Content }) {
  const conversationId = useContext(ConversationId);
  if (typeof content === "string") return content;
  return content.map((part, index) =>
    part.type === "text" ? (
      // biome-ignore lint/suspicious/noArrayIndexKey: parts never change their order.
      <p key={index}>{part.text}</p>
    ) : (
      // biome-ignore lint/suspicious/noArrayIndexKey: parts never change their order.
      <Medium key={index} part={part} address={addressOf(conversationId, part.url)} />
    ),
  );
}

function Medium({ part, address }: { part: MediaPart; address: string | undefined }) {
  const name = part.name ?? part.mediaType ?? "unnamed";
  if (address === undefined) {
    return (
      <p className="text-sm text-muted">
        {part.type === "image" ? "Image" : "File"}: {name}
      </p>
    );
  }
  if (part.type === "image") {
    return (
      <a href={address} target="_blank" rel="noreferrer" className="my-1 block">
        <img src={address} alt={name} className="max-h-80 rounded-lg" />
      </a>
    );
  }
  return (
    <a href={address} download={part.name ?? ""} className="block text-sm underline underline-offset-2">
      {name}
    </a>
  );
}

/** Only what this conversation keeps itself is loaded: loading anything else tells a stranger that it is being read. */
function addressOf(conversationId: string, url: string): string | undefined {
  const id = /^attachment:(att_\w+)$/.exec(url)?.[1];
  return id === undefined
    ? undefined
    : `/api/conversations/${encodeURIComponent(conversationId)}/attachments/${id}`;
}
