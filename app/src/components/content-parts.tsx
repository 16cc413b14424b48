/** A user's content as it was sent: text as text, images and files by name. */
import type { Content } from "../../../src/client/index.ts";

export function ContentParts({ content }: { content: Content }) {
  if (typeof content === "string") return content;
  return content.map((part, index) =>
    part.type === "text" ? (
      // biome-ignore lint/suspicious/noArrayIndexKey: parts never change their order.
      <p key={index}>{part.text}</p>
    ) : (
      // biome-ignore lint/suspicious/noArrayIndexKey: parts never change their order.
      <p key={index} className="text-sm text-muted">
        {part.type === "image" ? "Image" : "File"}: {part.name ?? part.mediaType ?? "unnamed"}
      </p>
    ),
  );
}
