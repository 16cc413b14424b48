/**
 * Converts a prompt of ACP to the content of a message, and content to chunks of a prompt. Pure.
 *
 * ACP-1  The text of a prompt keeps its order. A link and an embedded resource become a Markdown link at their place, and an empty line is
 *        between two texts. The text of a resource follows as a part of its own, and makes the message `untrusted`, because it comes from
 *        elsewhere. Small data becomes `data:` URLs.
 */
import type { ContentBlock } from "@agentclientprotocol/sdk";
import type { Content, MediaPart, TextPart } from "../../shared/content.ts";
import { isBlank } from "../../shared/content.ts";
import { defined } from "../../shared/defined.ts";
import { invalidAt } from "../../shared/validation.ts";
import { userContent } from "../content.ts";

/** The longest data that a message contains itself, in characters of base64. Longer data must be uploaded first. */
const MAX_INLINE_LENGTH = 256 * 1024;

/** Data of an image or a file. */
export interface PromptMedia {
  type: "image" | "file";
  /** Base64. */
  data: string;
  mediaType: string;
  name?: string;
}

export interface Prompt {
  texts: TextPart[];
  media: PromptMedia[];
  /** The message contains text of resources. */
  untrusted?: true;
}

/** Decodes a prompt (ACP-1). Throws `INVALID_INPUT` for audio. */
export function promptOf(blocks: readonly ContentBlock[]): Prompt {
  let body = "";
  const resources: TextPart[] = [];
  const media: PromptMedia[] = [];
  for (const [index, block] of blocks.entries()) {
    switch (block.type) {
      case "text":
        body += blocks[index - 1]?.type === "text" ? `\n\n${block.text}` : block.text;
        break;
      case "resource_link":
        body += link(block.title ?? block.name, block.uri);
        break;
      case "image":
        media.push({ type: "image", data: block.data, mediaType: block.mimeType });
        break;
      case "resource": {
        const { resource } = block;
        const name = nameOf(resource.uri);
        body += link(name, resource.uri);
        if ("text" in resource) resources.push(textPart(`Content of ${resource.uri}:\n\n${resource.text}`));
        else {
          const mediaType = resource.mimeType ?? "application/octet-stream";
          media.push({ type: "file", data: resource.blob, mediaType, name });
        }
        break;
      }
      default:
        throw invalidAt(`/prompt/${index}`, `Content of type "${block.type}" is not supported.`);
    }
  }
  const texts = isBlank(body) ? resources : [textPart(body), ...resources];
  return { texts, media, ...(resources.length > 0 && { untrusted: true }) };
}

/** Returns the data of a prompt as parts of a message; `undefined` if it must be uploaded. */
export function inlineMedia({ media }: Prompt): MediaPart[] | undefined {
  if (media.reduce((sum, { data }) => sum + data.length, 0) > MAX_INLINE_LENGTH) return undefined;
  return media.map(({ data, mediaType, ...part }) => ({
    ...part,
    url: `data:${mediaType};base64,${data}`,
    mediaType,
  }));
}

export function contentOf({ texts }: Prompt, media: readonly MediaPart[]): Content {
  return userContent([...texts, ...media], (part) => part);
}

/** Returns the blocks of a stored message. An attachment becomes a link, because its data stays on the server. */
export function blocksOf(content: Content): ContentBlock[] {
  if (typeof content === "string") return [{ type: "text", text: content }];
  return content.map((part): ContentBlock => {
    if (part.type === "text") return part;
    const { type, url, name, mediaType } = part;
    const [, mimeType, data] = /^data:([^;,]+);base64,(.+)$/s.exec(url) ?? [];
    if (mimeType === undefined || data === undefined)
      return { type: "resource_link", name: name ?? type, uri: url, ...defined({ mimeType: mediaType }) };
    if (type === "image") return { type: "image", data, mimeType };
    return { type: "resource", resource: { uri: name ?? type, blob: data, mimeType } };
  });
}

function textPart(text: string): TextPart {
  return { type: "text", text };
}

function link(name: string, uri: string): string {
  return `[${name}](${uri})`;
}

function nameOf(uri: string): string {
  return uri.split(/[/\\]/).findLast((part) => part !== "") ?? uri;
}
