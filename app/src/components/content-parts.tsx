/** Content of a user's message: text, uploaded images, links to uploaded files, and the names of other media. */
import { useContext } from "react";
import type { Content, MediaPart } from "../../../src/client/index.ts";
import { ConversationId } from "../conversation-id.ts";
import { useFileAddress } from "../hooks/use-file-address.ts";
import { DownloadLink } from "./download-link.tsx";

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
    return <Image address={address} name={name} />;
  }
  return (
    <DownloadLink
      address={address}
      name={part.name ?? ""}
      className="block text-sm underline underline-offset-2"
    >
      {name}
    </DownloadLink>
  );
}

function Image({ address, name }: { address: string; name: string }) {
  const source = useFileAddress(address);
  return (
    <a href={source} target="_blank" rel="noreferrer" className="my-1 block">
      <img src={source} alt={name} className="max-h-80 rounded-lg" />
    </a>
  );
}

/** Only uploads of this conversation are loaded: any other address would reveal to its server that the page is open. */
function addressOf(conversationId: string, url: string): string | undefined {
  const id = /^attachment:(att_\w+)$/.exec(url)?.[1];
  return id === undefined
    ? undefined
    : `/api/conversations/${encodeURIComponent(conversationId)}/attachments/${id}`;
}
